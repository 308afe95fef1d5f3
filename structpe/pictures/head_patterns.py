"""The attention of each head on one structure, for untrained position models and trained models.

A Transformer runs on the structure, and the queries, keys and terms of each attention are recorded. All position models
are measured in the same way, whether they act on the input, on keys or on scores. If all units have the same content,
pairs differ only by their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import singledispatch
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.attention import attend
from structpe.data.batch import Batch, Example, collate
from structpe.errors import StoreError, undamaged
from structpe.formats import Item
from structpe.nn.graph_model import GraphModel
from structpe.nn.layer import Attention, AttentionConfig, Layer, StackConfig
from structpe.nn.seq2seq import EncoderDecoder
from structpe.nn.stack import Stack
from structpe.pictures.style import PictureError
from structpe.positions import Dims, PositionModel, Sources, Sum
from structpe.positions.batch import encode
from structpe.positions.build import Config, build, fitted
from structpe.structure import Structure
from structpe.tasks.runs import Run, load_run
from structpe.tasks.runs.prediction import PredictionRun
from structpe.tasks.runs.text import GraphToTextRun, PretrainedTextRun
from structpe.tasks.training.result import WEIGHTS, check_fit, load_weights
from structpe.terms import Lookup, SparsePairs, Terms

__all__ = [
    "CONTENTS",
    "QUANTITIES",
    "Content",
    "Patterns",
    "Quantity",
    "Trained",
    "Untrained",
    "begin",
    "load",
    "of_encoder",
    "weights_of",
]


Quantity: TypeAlias = Literal["bias", "scores", "attention"]
QUANTITIES: tuple[Quantity, ...] = ("bias", "scores", "attention")


@dataclass(frozen=True, eq=False)
class Patterns:
    """Attention on a structure of u units, in l layers of h heads.

    Attributes:
        attention: (l, h, u, u) the weights; the row of a query sums to 1, or is 0 if it attends to nothing.
        bias: (l, h, u, u) the sum of ``Terms.bias`` and ``Terms.factors``; None if the model adds nothing to scores.
    """

    attention: Tensor
    bias: Tensor | None = None

    @property
    def scores(self) -> Tensor:
        """(l, h, u, u) log attention minus its mean over a row, NaN for masked pairs.

        Scores are determined up to a constant per row, which does not change the softmax; here their mean is 0.
        """
        logs = torch.where(self.attention > 0, self.attention, torch.nan).log()
        return logs - logs.nanmean(dim=-1, keepdim=True)

    def complete_scores(self) -> Tensor:
        """(l, h, u, u) the scores, if all queries attend to all keys.

        Raises:
            PictureError: some pairs are masked.
        """
        scores = self.scores
        if not scores.isfinite().all():
            raise PictureError("some queries do not attend to all keys, so there is no complete matrix of scores")
        return scores

    def quantity(self, name: Quantity) -> Tensor:
        """(l, h, u, u) one of :data:`QUANTITIES`, NaN for masked pairs.

        Raises:
            PictureError: the model has no bias, or the quantity does not exist.
        """
        if name not in QUANTITIES:
            raise PictureError(f"there is no quantity {name!r}; choose one of {', '.join(QUANTITIES)}")
        if name == "bias":
            if self.bias is None:
                raise PictureError(
                    "the position model adds no bias to scores, so there is none to show; choose the quantity "
                    "'scores', which is what positions do to them, or 'attention'"
                )
            return torch.where(self.attention > 0, self.bias, torch.nan)
        return self.scores if name == "scores" else self.attention


@dataclass(frozen=True, eq=False)
class Untrained:
    """A position model before training, and the seed of its parameters."""

    position: PositionModel
    seed: int


def begin(position: Config, dims: Dims, structures: Callable[[], Sequence[Structure]], seed: int = 0) -> Untrained:
    """Build a position model before training, with encodings fitted to structures.

    Args:
        position: plain data for :func:`structpe.positions.build`.
        dims: sizes of the Transformer.
        structures: called only if an encoding needs a vocabulary, such as labels.
        seed: seed of its parameters.

    Raises:
        PositionError: the position model, encoding or option does not exist.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Untrained(build(fitted(position, dims, structures), dims).eval(), seed)


@torch.no_grad()
def of_encoder(structure: Structure, position: PositionModel, seed: int = 0) -> Patterns:
    """Attention in an encoder at initialisation, with the same content in all units.

    Args:
        structure: the graph.
        position: such as one from :func:`begin`.
        seed: seed of the projections and the content.

    Raises:
        EncodingError, PositionError: the position model does not fit the structure.
        PictureError: the position model has its own attention.
    """
    refuse_own_attention(position)
    dims, was = position.dims, next((p.dtype for p in position.parameters()), torch.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = StackConfig(
            *(dims.width, dims.layers, dims.heads, AttentionConfig(kernel="dense")),
            message_passing=None,
            feedforward=2 * dims.width,
            norm="layer",
            norm_first=True,
        )
        encoder = Stack(config, position).double().eval()
        x = torch.randn(dims.width, dtype=torch.float64).expand(1, structure.unit_count, -1)
    positions = encode([structure], position.encodings).to(torch.device("cpu"), torch.float64)
    try:
        with _listening(encoder) as heard:
            encoder.padded(x, positions)
    finally:
        position.to(was)
    return gathered(heard, position)


def refuse_own_attention(position: PositionModel) -> None:
    """Check that attention follows the one equation.

    Raises:
        PictureError: the model has its own attention.
    """
    if position.own_attention:
        name = next(each.name for each in (position if isinstance(position, Sum) else [position]) if each.own_attention)
        raise PictureError(
            f"position model {name!r} has its own attention, which does not return weights; its encodings can be "
            f"shown, but not its heads"
        )


@contextmanager
def _listening(model: nn.Module) -> Iterator[list[Patterns]]:
    """Record each attention of an encoder, layer by layer, while it runs on one structure."""
    heard: list[Patterns] = []

    def note(module: nn.Module, given: tuple[Any, ...]) -> None:
        assert isinstance(module, Attention)
        x, site, context = given[0], given[2], given[1]
        (rows,), prepared = context.layout.padded(x), context.prepared[0]
        terms = context.terms(site)[0] + Terms(feature_map=module.feature_map)
        sources = context.position.sources(Sources(rows, rows, rows), prepared, site)
        keys, _ = module.project(sources.key, sources.value)
        queries = module.query(sources.query).unflatten(-1, (module.heads, -1)).transpose(1, 2)
        heard.append(_noted(queries, keys, terms))

    layers = [each.attention for each in model.modules() if isinstance(each, Layer)]
    hooks = [each.register_forward_pre_hook(note) for each in layers if isinstance(each, Attention)]
    try:
        yield heard
    finally:
        for hook in hooks:
            hook.remove()


def gathered(heard: Sequence[Patterns], position: PositionModel) -> Patterns:
    """Join the patterns of all layers.

    Raises:
        PictureError: the model has no attention.
    """
    if not heard:
        refuse_own_attention(position)
        raise PictureError("the model has no attention, so there is nothing to show of it; its encodings can be shown")
    adds = any(each.bias is not None for each in heard)
    zero = torch.zeros_like(heard[0].attention)
    bias = torch.cat([zero if each.bias is None else each.bias for each in heard]) if adds else None
    return Patterns(torch.cat([each.attention for each in heard]), bias)


def weights_of(q: Tensor, k: Tensor, terms: Terms) -> Tensor:
    """(b, h, n, m) the attention weights: the output of attention with unit vectors as values.

    Args:
        q: (b, h, n, d).
        k: (b, h, m, d).
        terms: all terms; those of values are ignored.
    """
    batch, heads, count, width = k.shape
    unit = torch.eye(count, dtype=q.dtype, device=q.device).expand(batch, heads, count, count)
    parts = [unit[..., start : start + width] for start in range(0, count, width)]
    padded = [functional.pad(columns, (0, width - columns.shape[-1])) for columns in parts]
    alone = replace(terms, value=())
    return torch.cat([attend(q, k, columns, alone, "dense") for columns in padded], dim=-1)[..., :count]


def _bias_of(terms: Terms, heads: int, n: int, m: int) -> Tensor | None:
    """(1, h, n, m) the sum of all biases and factors of one structure; None if there are none."""
    parts = [factor.left @ factor.right.transpose(-1, -2) for factor in terms.factors]
    parts += [_pairs(each, n, m) for each in terms.bias]
    if not parts:
        return None
    return sum(parts[1:], parts[0]).expand(-1, heads, n, m)


def _pairs(bias: Lookup | SparsePairs | Tensor, n: int, m: int) -> Tensor:
    if isinstance(bias, Tensor):
        return bias
    return (bias.dense() if isinstance(bias, Lookup) else bias.dense(1, n, m)).movedim(3, 1)


def _noted(q: Tensor, k: Tensor, terms: Terms) -> Patterns:
    mixed = terms.projection is not None  # biases are added to scores of mixtures of keys, which are not units
    bias = None if mixed else _bias_of(terms, q.shape[1], q.shape[2], k.shape[2])
    return Patterns(weights_of(q, k, terms)[:1], None if bias is None else bias[:1])


Content: TypeAlias = Literal["same", "own"]
REMEDY = "restore it, or train again"
LAST = ("head.", "readout.")
"""Parts of a model of graphs after the last layer."""
TABLES = ("nodes.", "stack.edges.")
"""Parts that embed features."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model on one structure.

    Attributes:
        structure: the structure in the form of the run, for example with relations as nodes and subwords as units.
        position: the position model of the encoder.
        patterns: the patterns of its attention; None if it has its own attention.
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
            all learned ones), and pairs differ only by their positions; with ``own``, units have their own vectors.
            Runs of prediction know only the features of their benchmark, and need ``same``.

    Raises:
        StoreError: the folder has no trained model, or a file is damaged.
        PictureError: the model is of another task, the content is not possible, or the item is of another class.
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
    with _listening(model.encoder) as heard:
        _encode(model, batch, content)
    return Trained(example.structure, position, gathered(heard, position), str(folder), CONTENTS[content])


def _encode(model: EncoderDecoder, batch: Batch, content: Content) -> None:
    """Run the encoder with the units' own vectors, or with their mean for all."""

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
    with _listening(model) as heard:
        model.hidden(collate([Example.of(bare, encoded)], model.grouping))
    return Trained(structure, model.position, gathered(heard, model.position), str(folder), CONTENTS[content])


def _filled(make: Callable[[], GraphModel], run: PredictionRun) -> GraphModel:
    """The model with the weights of the run, and with the mean feature vector for all nodes and all edges."""
    file = run.folder / WEIGHTS
    if not file.exists():
        raise StoreError(f"{run.folder} holds no model.safetensors; training writes it at the first validation")
    check_fit(make, file, REMEDY, (*LAST, *TABLES))
    model = make()
    with undamaged(file, REMEDY):
        weights = load_weights(file, REMEDY, run.identity)
        own = model.state_dict()  # the last layer has another number of outputs, and is not used
        weights = {name: value for name, value in weights.items() if not name.startswith(LAST)}
        for part in ("nodes", "stack.edges"):
            table, line = weights.pop(f"{part}.table.weight", None), weights.pop(f"{part}.linear.weight", None)
            constant = weights.pop(f"{part}.linear.bias", None)
            del line
            if (mean := constant if table is None else table.mean(dim=0)) is not None:
                weights[f"{part}.table.weight"] = mean[None]
        model.load_state_dict(weights | {name: own[name] for name in own if name.startswith(LAST)})
    return model.eval()
