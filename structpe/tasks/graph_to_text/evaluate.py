"""How good a trained model is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from structpe.formats import Item
from structpe.nn.search import SearchConfig
from structpe.tasks.graph_to_text.generate import Generated, generate
from structpe.tasks.graph_to_text.scores import Scores, score
from structpe.tasks.runs._text import text_run

__all__ = ["evaluate"]


def evaluate(
    folder: str | Path,
    source: str | Path | Sequence[Item],
    search: SearchConfig | None = None,
    device: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[Scores, list[Generated]]:
    """Write a text for every item and score all against the references.

    Args:
        folder: of the run.
        source: items, or a file or folder of them.
        search: how texts are searched for; None as the run's configuration says.
        device: such as ``cpu`` or ``cuda``; None takes a GPU where there is one.
        progress: called with the number of items done, and of all.

    Raises:
        StoreError: the folder holds no trained model.
        ConfigError: an item has no reference; see ``Generator.generate``.
    """
    config = text_run(folder).config
    texts = list(generate(folder, source, search, device=device, progress=progress))
    scores = score([t.text for t in texts], [t.references for t in texts], config.lowercase)
    return scores, texts
