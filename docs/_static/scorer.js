// The order of what a search finds: first the pages that answer a frequent word, then guides, models, the reference, the
// API, and at last the records of decisions and changes.
const ASKED = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
const ANSWERS = {
  pe: ["idea", "get_started", "howto/choose", "catalogue", "encodings", "positions"],
  rope: ["catalogue/rotary", "cookbook", "course/2_absolute_or_relative", "catalogue/rotary-half", "positions"],
  bias: ["course/5_one_equation", "positions", "catalogue/alibi", "catalogue/t5", "cookbook"],
  gps: ["coming_from/graphgps", "benchmarks", "catalogue/rwse", "catalogue/lap-pe"],
  lappe: ["catalogue/encodings/laplacian", "catalogue/lap-pe", "catalogue/dwivedi", "encodings", "cookbook"],
  rwse: ["catalogue/rwse", "catalogue/encodings/random-walk", "encodings", "cookbook"],
  rwpe: ["catalogue/encodings/random-walk", "catalogue/rwse", "encodings"],
  install: ["install", "get_started"],
  amr: ["graph_to_text", "course/7_from_amr_to_text"],
};
const FOLDERS = [
  [/^decisions\//, -40],
  [/^(changes|releases|what-we-learned)$/, -25],
  [/^api\//, -30],
  [/^auto_gallery\//, 4],
  [/^catalogue\//, 2],
  [/^(get_started|install|idea|howto\/|graph_to_text|parsing|benchmarks|adapters|cookbook|coming_from\/)/, 12],
  [/^course\//, 8],
];
var Scorer = {
  score: ([page, , , , score]) => {
    if (page === `catalogue/${ASKED.replace(/\s+/g, "-")}`) return score + 400; // the model of that name
    for (const word of ASKED.split(/\s+/)) {
      const place = (ANSWERS[word] || []).indexOf(page);
      if (place >= 0) return score + 300 - 30 * place;
    }
    const folder = FOLDERS.find(([name]) => name.test(page));
    return score + (folder ? folder[1] : 5);
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
