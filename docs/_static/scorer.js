// The order of what a search finds: the page of the model of that name, other models, guides, and then the API.
var Scorer = {
  score: ([page, , , , score]) => {
    const asked = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
    if (page.startsWith("api/")) return score - 30;
    if (!page.startsWith("catalogue/")) return score + 5;
    return score + (page.split("/").pop() === asked.replace(/\s+/g, "-") ? 100 : 10);
  },
  // As in Sphinx.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
