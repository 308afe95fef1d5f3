"""A trained run on one structure: what it writes or predicts, its attention, and the kernels of its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from structpe.errors import ReadError, StructPEError
from structpe.formats import Item
from structpe.pictures.head_patterns import load
from structpe.pictures.style import PictureError
from structpe.pictures.view import View, view
from structpe.tasks.explaining import observed, summary
from structpe.tasks.graph_to_text.generator import Generator, read_split
from structpe.tasks.prediction.predictor import Predictor
from structpe.tasks.runs import Run, load_run
from structpe.tasks.runs.prediction import PredictionRun
from structpe.tasks.runs.text import TextRun
from structpe.tasks.training.result import WEIGHTS

__all__ = ["RunSeen", "item_of_run", "options_of_run", "run_on"]

MOST_ROWS = 30
"""Largest number of predictions of nodes that are listed."""


@dataclass(frozen=True, eq=False)
class RunSeen:
    """A trained run on one structure.

    Attributes:
        name: the folder, as given.
        kind: the kind of run.
        text: what the model writes; None for a run of prediction.
        references: the texts of the item, if it has any.
        columns: names of the columns of predictions.
        rows: predictions.
        views: bias or scores, and attention, of its encoder; empty without attention weights.
        kernels: the kernel of each layer on this structure, as ``structpe explain`` says it.
        notes: what cannot be shown, and why.
    """

    name: str
    kind: str
    text: str | None
    references: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    views: tuple[View, ...]
    kernels: tuple[str, ...]
    notes: tuple[str, ...]


def run_on(folder: str, item: Item) -> RunSeen:
    """A run on an item.

    Raises:
        StoreError: the folder holds no trained model, or a file is damaged.
        StructPEError: the model does not fit the structure.
    """
    run, ready = _ready(folder, _stamp(folder))
    text, table = None, dict[str, Any]()
    if isinstance(ready, Generator):
        text = next(iter(ready.generate([item]))).text
        kernels = _kernels_of_text(ready, item, text)
    else:
        table = ready.predict([item.structure]).table([item.id])
        kernels = summary(observed(ready.model, lambda: ready.predict([item.structure])))
    rows = tuple(tuple(map(_number, row)) for row in zip(*table.values(), strict=True))
    views, notes = _views(folder, item, "own" if isinstance(ready, Generator) else "same")
    if len(rows) > MOST_ROWS:
        notes += (f"the first {MOST_ROWS} of {len(rows)} rows are shown; 'structpe predict' writes all",)
    return RunSeen(folder, run.name, text, item.texts, tuple(table), rows[:MOST_ROWS], views, tuple(kernels), notes)


def options_of_run(folder: str, reader: str) -> Mapping[str, Any]:
    """The options with which a run reads files of a reader; none if it reads others.

    Raises:
        StoreError: the folder holds no run.
    """
    reads = load_run(folder).reads()
    return reads.options if reads.reader == reader else {}


def item_of_run(folder: str, index: int) -> Item:
    """An item of the data of a run: of its test split, or of validation or training if it names none.

    Raises:
        ReadError: the data are no longer there, or have fewer items.
        StoreError: the folder holds no run.
    """
    run = load_run(folder)
    try:
        items = _items(run)
        count = len(items)
        if not 0 <= index < count:
            raise ReadError(f"the data of the run have {count} items, 0..{count - 1}; {index} is out of range")
        found = items[index]
    except StructPEError as error:
        raise ReadError(f"{error}; or paste a structure instead of one of the run's data").at(folder) from None
    return found if isinstance(found, Item) else Item(found, id=found.name)


def _items(run: Run[Any, Any, Any, Any]) -> Sequence[Any]:
    if isinstance(run, TextRun):
        data = run.config.data
        return read_split(data, "test" if data.test else "dev" if data.dev else "train")
    if isinstance(run, PredictionRun):
        from structpe.datasets import load as load_benchmark

        data = run.config.data
        return load_benchmark(data.name, data.folder, **data.options).graphs
    raise PictureError(f"a run of {run.name} has no items that could be shown")


def _stamp(folder: str) -> int:
    """When the weights were written: a run that has trained on is loaded again."""
    file = Path(folder) / WEIGHTS
    return file.stat().st_mtime_ns if file.is_file() else 0


@lru_cache(maxsize=2)
def _ready(folder: str, stamp: int) -> tuple[Run[Any, Any, Any, Any], Generator | Predictor]:
    import torch

    del stamp
    run = load_run(folder)
    ready = run.ready(torch.device("cpu"))
    if not isinstance(ready, Generator | Predictor):
        raise PictureError(f"{folder} holds a run of {run.name}, which neither writes nor predicts structures")
    return run, ready


def _kernels_of_text(ready: Generator, item: Item, text: str) -> list[str]:
    """The kernels of all layers while the model reads the structure and its own text."""
    if not text.strip():
        return ["the model writes nothing, so its layers are not run on a text"]
    examples = ready.text_model.examples([replace(item, texts=(text,))])
    batch = ready.text_model.collate(examples)
    return summary(observed(ready.model, lambda: ready.text_model.loss(batch, 0.0)))


def _views(folder: str, item: Item, content: Any) -> tuple[tuple[View, ...], tuple[str, ...]]:
    """What its positions add, with the same content everywhere, and its attention."""
    try:
        same = load(folder, item)
        own = same if content == "same" else load(folder, item, content)
    except PictureError as error:
        return (), (str(error),)
    first = view(item.structure, [same])
    if not first.blocks:
        return (), first.notes
    return (first, view(item.structure, [own], "attention")), ()


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
