"""Attention of a trained model on a structure, for models of both tasks, from the folders of their runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from structpe.data.batch import Batch, Example, collate
from structpe.errors import StoreError, undamaged
from structpe.formats import Item
from structpe.nn.graph_model import GraphModel
from structpe.nn.seq2seq import EncoderDecoder
from structpe.pictures._plot import PictureError
from structpe.pictures.head_patterns import Patterns, gathered, listening
from structpe.positions import PositionModel
from structpe.positions.build import build
from structpe.structure import Structure
from structpe.tasks.runs import Run, load_run
from structpe.tasks.runs.graph_to_text import GraphToTextRun
from structpe.tasks.runs.prediction import PredictionRun
from structpe.tasks.runs.pretrained_text import PretrainedTextRun
from structpe.tasks.training.fitting import check_fit
from structpe.tasks.training.weights import WEIGHTS, load_weights

__all__ = ["CONTENTS", "Content", "Trained", "load"]

Content: TypeAlias = Literal["same", "own"]
REMEDY = "restore it, or train again"
LAST = ("head.", "readout.")
"""Parts of a model of graphs that make predictions of vectors."""
TABLES = ("nodes.", "stack.edges.")
"""Parts that make vectors of features."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model on one structure.

    Attributes:
        structure: in the form of the run, for example with relations as nodes and subwords as units.
        position: the position model of the encoder.
        patterns: the patterns of its attention.
        name: the folder of the run, as given.
        content: the content of the units, in words.
    """

    structure: Structure
    position: PositionModel
    patterns: Patterns | None
    name: str
    content: str


CONTENTS = {"same": "all units of the same content", "own": "units of their own content"}


def load(folder: str | Path, item: Item | Structure, content: Content = "same") -> Trained:
    """Run a trained model on the structure of an item.

    Args:
        folder: folder of a run of graph to text or of prediction.
        item: an item from a reader, or a structure.
        content: with ``same``, all units have the same vector, the mean of those in the structure (for prediction, of
            those that the run has learned), so that pairs differ only by their positions; with ``own``, units have
            their own. Runs of prediction have learned the features of their benchmark only, so they need ``same``.

    Raises:
        StoreError: the folder has no trained model, or a file is damaged.
        PictureError: the model is of another task, the content is not possible, or the item is none.
        EncodingError, PositionError: the position model does not fit the structure.
    """
    if content not in CONTENTS:
        raise PictureError(f"there is no content {content!r}; give one of {', '.join(CONTENTS)}")
    run = load_run(folder)
    if not isinstance(item, Item | Structure):
        raise PictureError(f"{type(item).__name__} is neither an item nor a structure; structpe.read gives both")
    return _trained(run, Item(item) if isinstance(item, Structure) else item, content)


@singledispatch
def _trained(run: Run[Any, Any, Any, Any], item: Item, content: Content) -> Trained:
    raise PictureError(f"{run.folder} holds a run of {run.name}, which has no structures to show; give one of another")


@_trained.register(PretrainedTextRun)
def _pretrained_text(run: PretrainedTextRun, item: Item, content: Content) -> Trained:
    del item, content
    raise PictureError(
        f"{run.folder} holds a pretrained model, whose layers are Hugging Face's, and pictures need those of structpe; "
        f"its weights of attention are given by structpe.load(folder).model.model(..., output_attentions=True)"
    )


@_trained.register(GraphToTextRun)
@torch.no_grad()
def _graph_to_text(run: GraphToTextRun, item: Item, content: Content) -> Trained:
    (model, preparer), folder = run.load(), run.folder
    model = model.double()
    position = model.encoder.position
    (example,) = preparer.examples([replace(item, texts=())], position.encodings)
    if position.own_attention:
        return Trained(example.structure, position, None, str(folder), CONTENTS[content])
    batch = preparer.collate([example], "together")
    precise = tuple(each.to(torch.device("cpu"), torch.float64) for each in batch.positions)
    batch = batch.replaced(positions=precise)
    with listening(model.encoder) as heard:
        _encode(model, batch, content)
    return Trained(example.structure, position, gathered(heard, position), str(folder), CONTENTS[content])


def _encode(model: EncoderDecoder, batch: Batch, content: Content) -> None:
    """Run the encoder, with the vector of each unit, or with their mean for all."""

    def mean(module: nn.Module, given: object, vectors: Tensor) -> Tensor:
        del module, given
        return vectors.mean(dim=0, keepdim=True).expand_as(vectors)

    hook = model.embedding.register_forward_hook(mean) if content == "same" else None
    try:
        model.encode(batch)
    finally:
        if hook is not None:
            hook.remove()


@_trained.register(PredictionRun)
@torch.no_grad()
def _prediction(run: PredictionRun, item: Item, content: Content) -> Trained:
    config, folder = run.config, run.folder
    if content == "own":
        raise PictureError(
            f"{folder} holds a run of prediction, which has learned the features of its benchmark and not of a file; "
            f"give all nodes the same content (same)"
        )
    described = run.restore().position
    model = _filled(lambda: GraphModel(config.model, build(described, config.model.dims), None, None, 1), run)
    position = model.position
    structure = replace(item.structure, units=None, owner=None)  # these models have nodes only
    if position.own_attention:
        return Trained(structure, position, None, str(folder), CONTENTS[content])
    if not config.model.attention:
        raise PictureError(
            f"{folder} holds a model without attention, whose layers pass messages only, so there is nothing to show"
        )
    encoded = {encoding: encoding.one(structure) for encoding in model.position.encodings}
    kept = {name: value for name, value in structure.features.items() if name not in ("x", "edge_x")}
    bare = replace(structure, features=kept)
    with listening(model) as heard:
        model.hidden(collate([Example.of(bare, encoded)], model.grouping))
    return Trained(structure, model.position, gathered(heard, model.position), str(folder), CONTENTS[content])


def _filled(make: Callable[[], GraphModel], run: PredictionRun) -> GraphModel:
    """The model with the weights of the run; all nodes, and all edges, have the mean of the learned feature vectors."""
    file = run.folder / WEIGHTS
    if not file.exists():
        raise StoreError(f"{run.folder} holds no model.safetensors; training writes it at the first validation")
    check_fit(make, file, REMEDY, (*LAST, *TABLES))
    model = make()
    with undamaged(file, REMEDY):
        weights = load_weights(file, REMEDY, run.identity)
        own = model.state_dict()  # whose last layer has another number of outputs, and is not used
        weights = {name: value for name, value in weights.items() if not name.startswith(LAST)}
        for part in ("nodes", "stack.edges"):
            table, line = weights.pop(f"{part}.table.weight", None), weights.pop(f"{part}.linear.weight", None)
            constant = weights.pop(f"{part}.linear.bias", None)
            del line
            if (mean := constant if table is None else table.mean(dim=0)) is not None:
                weights[f"{part}.table.weight"] = mean[None]
        model.load_state_dict(weights | {name: own[name] for name in own if name.startswith(LAST)})
    return model.eval()
