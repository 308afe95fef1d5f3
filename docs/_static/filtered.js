// Filters above each table of the class "filtered": a search, and a choice for each column of few values.
// Without JavaScript the table is there as it is.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.filtered")) {
    const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    const rows = [...table.tBodies[0].rows].map((row) => ({
      row,
      cells: [...row.cells].map((cell) => cell.textContent.trim()),
    }));
    const bar = document.createElement("div");
    bar.className = "filters";
    const search = document.createElement("input");
    search.type = "search";
    search.placeholder = "search";
    search.setAttribute("aria-label", "search the table");
    const count = document.createElement("output");
    const choices = [];
    heads.forEach((head, column) => {
      const values = [...new Set(rows.map(({ cells }) => cells[column]))].sort();
      if (values.length < 2 || values.length > Math.min(30, rows.length / 2)) return;
      const select = document.createElement("select");
      select.setAttribute("aria-label", head);
      select.add(new Option(`${head}: all`, ""));
      for (const value of values) select.add(new Option(`${head}: ${value || "none"}`, `=${value}`));
      choices.push({ select, column });
    });
    const show = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { row, cells } of rows) {
        const text = cells.join(" ").toLowerCase();
        const kept =
          words.every((word) => text.includes(word)) &&
          choices.every(({ select, column }) => !select.value || select.value === `=${cells[column]}`);
        row.hidden = !kept;
        shown += kept;
      }
      count.textContent = `${shown} of ${rows.length}`;
    };
    for (const { select } of choices) select.addEventListener("change", show);
    search.addEventListener("input", show);
    bar.append(search, ...choices.map(({ select }) => select), count);
    table.before(bar);
    show();
  }
});
