"""Words by which people search, for pages that use others: rope for rotary positions, LapPE for Laplacian eigenvectors.

They are put into the page as keywords, which the index of the search reads and nobody sees; _static/scorer.js orders
what is found.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes

from structpe.positions import MODELS

__all__ = ["PAGES", "words"]

PAGES = {
    "index": "PE positional encoding embedding",
    "get_started": "PE positional encoding tutorial quickstart",
    "install": "pip conda installation requirements setup",
    "idea": "PE positional encoding embedding APE RPE",
    "encodings": "PE positional encoding LapPE RWSE RWPE SPD shortest path",
    "positions": "PE RPE APE bias RoPE positional embedding",
    "catalogue": "PE RPE RoPE bias GPS LapPE RWSE",
    "howto/choose": "PE RPE RoPE bias LapPE which best",
    "benchmarks": "GPS GraphGPS ZINC OGB LapPE",
    "coming_from/graphgps": "GPS LapPE RWSE",
    "graph_to_text": "KG knowledge graph AMR WebNLG triples RDF",
    "parsing": "dependency tree parse syntax",
    "adapters": "HF Hugging Face BERT Llama T5 inject",
    "cookbook": "RoPE bias LapPE RWSE ALiBi recipe",
    "course/2_absolute_or_relative": "RoPE rotary APE RPE PE",
    "course/4_graphs": "LapPE RWSE GPS graph PE",
    "course/5_one_equation": "bias RoPE",
    "catalogue/encodings/laplacian": "LapPE PE",
    "catalogue/encodings/random-walk": "RWSE RWPE PE",
    "catalogue/encodings/undirected-distance": "SPD shortest path distance",
    "catalogue/dwivedi": "LapPE",
    "catalogue/lap-pe": "LapPE GPS GraphGPS",
    "catalogue/lap-pe-transformer": "LapPE GPS GraphGPS",
    "catalogue/rwse": "RWSE RWPE GPS GraphGPS",
}
"""Words of single pages."""
FAMILIES = {
    "rotary": "RoPE rotary",
    "spectr": "LapPE Laplacian",
    "walks": "RWSE",
    "decay": "bias RPE",
    "buckets": "bias RPE",
}
"""Words of all models in a file of ``structpe/positions`` whose name has this word."""


def words(page: str) -> str:
    """The words that are added to a page."""
    name = page.removeprefix("catalogue/")
    family = MODELS[name].__module__ if name in MODELS else ""
    return " ".join([PAGES.get(page, ""), *(said for name, said in FAMILIES.items() if name in family)]).strip()


def add(app: Any, doctree: nodes.document) -> None:
    """Put the words of a page into it."""
    if found := words(app.env.current_document.docname):
        doctree.append(nodes.meta(name="keywords", content=", ".join(found.split())))


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
