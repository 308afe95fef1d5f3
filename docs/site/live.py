"""Writes ``interactive.html`` beside the pages, the picture that docs/pictures.md makes. Sphinx calls ``setup``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from structpe import Dims, read
from structpe.datasets import sample
from structpe.pictures import begin, page, save_page

__all__ = ["setup"]


def write(app: Any, error: Exception | None) -> None:
    """A parse, its distances, and the biases that Graformer makes of them before training."""
    if error is None and app.builder.format == "html":
        structures = read(sample("trees_sample/sample.conllu")).structures
        seen = [begin("graformer", Dims(64, 4, 1), lambda: structures)]
        save_page(page(structures[2], seen), Path(app.outdir) / "interactive.html")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
