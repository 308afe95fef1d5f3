// Shows a new view without loading the page again, keeps the last one after wrong input, and fills in samples.
// Without this script the form does the same by loading the page.
(() => {
  const part = id => document.getElementById(id);
  const form = part("choices"), view = part("view"), message = part("message"), status = part("status");
  const kind = part("choices").elements.form, text = part("text"), parse = part("parse");
  const samples = JSON.parse(part("samples").textContent);
  let asked = 0;

  function fit() {
    const pasted = kind.value in samples;
    document.querySelectorAll("[data-for]").forEach(each => {
      each.hidden = each.dataset.for === "pasted" ? !pasted : each.dataset.for !== kind.value;
    });
    if (!pasted) document.querySelector("details").open = true;
    if (pasted) part("text-help").textContent = `${samples[kind.value].help} Up to ${text.dataset.most} letters.`;
  }

  async function ask(submitted) {
    const mine = ++asked;  // an answer to an earlier question is ignored from now on
    if (text.value.length > 10 * text.dataset.most) {
      view.removeAttribute("aria-busy");
      status.textContent = "";
      message.textContent = `the text has ${text.value.length} letters, and the app takes ${text.dataset.most}; paste a part of it`;
      message.focus();
      return;
    }
    view.setAttribute("aria-busy", "true");
    status.textContent = "Drawing …";
    let said = "", page = null;
    try {
      const answer = await fetch("/", {
        method: "POST", body: new URLSearchParams(new FormData(form)), headers: {"x-message-only": "1"},
      });
      page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine !== asked) return;
      said = page.getElementById("message").textContent;
      if (!said) {
        view.replaceChildren(...page.getElementById("view").childNodes);
        part("was").value = page.getElementById("was").value;
        document.title = page.title;
        if (answer.url !== location.href) history.pushState(null, "", answer.url);
      }
    } catch {
      if (mine !== asked) return;
      said = "The app does not answer; start it again by: structpe app";
    }
    view.removeAttribute("aria-busy");
    message.textContent = said;
    status.textContent = said ? "" : `Shown: ${document.title}`;
    if (said && submitted) message.focus();
  }

  form.addEventListener("submit", event => { event.preventDefault(); ask(true); });
  form.addEventListener("change", event => {
    if (event.target === kind) {
      const untouched = Object.values(samples).some(each => each.sample.trim() === text.value.trim());
      if (kind.value in samples && untouched) {
        text.value = samples[kind.value].sample;
        parse.value = samples[kind.value].heads;
      }
      fit();
    } else if (event.target !== text && event.target !== parse) {
      ask(false);
    }
  });
  // A cell of a map: its value is told, and the row of its query is framed in every map with the same rows.
  const last = new WeakMap();

  function tell(map, row, column) {
    const shown = JSON.parse(map.dataset.map), [rows, columns] = [shown.rows, shown.columns];
    row = Math.max(0, Math.min(rows.length - 1, row));
    column = Math.max(0, Math.min(columns.length - 1, column));
    last.set(map, [row, column]);
    const value = shown.values && (shown.values[row][column] ?? shown.special[`${row},${column}`] ?? "none");
    const place = `${shown.axes[0]} ${rows[row]}, ${shown.axes[1]} ${columns[column]}`;
    part("cell").textContent = `${map.getAttribute("aria-label")}: ${place}${shown.values ? `: ${value}` : ""}`;
    const key = JSON.stringify(rows);
    view.querySelectorAll("svg.map").forEach(each => {
      const its = JSON.parse(each.dataset.map);
      each.querySelectorAll(".frame").forEach(frame => frame.remove());
      if (JSON.stringify(its.rows) !== key) return;
      const [x, y, cell] = its.at, across = its.columns.length * cell;
      frame(each, x, y + row * cell, across, cell);
      if (each === map) frame(each, x + column * cell, y + row * cell, cell, cell);
    });
  }

  function frame(map, x, y, width, height) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({x, y, width, height, class: "frame"})) made.setAttribute(name, value);
    map.append(made);
  }

  view.addEventListener("pointermove", event => {
    const map = event.target.closest("svg.map");
    if (!map) return;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
    const shown = JSON.parse(map.dataset.map), [x, y, cell] = shown.at;
    const [row, column] = [Math.floor((at.y - y) / cell), Math.floor((at.x - x) / cell)];
    if (row >= 0 && row < shown.rows.length && column >= 0 && column < shown.columns.length) tell(map, row, column);
  });
  view.addEventListener("keydown", event => {
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!step || !event.target.matches("svg.map")) return;
    event.preventDefault();
    const [row, column] = last.get(event.target) ?? [-step[0], -step[1]];
    tell(event.target, row + step[0], column + step[1]);
  });
  window.addEventListener("popstate", () => location.reload());
  fit();
})();
