"""Attention on one structure, head by head: numbers for pictures of position models.

A Transformer of the library runs on the structure, and queries, keys and terms of each attention are recorded. So every
position model is measured in the same way, whether it acts on the input, on keys or on scores. If all units have the
same content, pairs differ only by their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.attention import attend
from structpe.data.encode import encode
from structpe.nn.attention import Attention
from structpe.nn.layer import Layer, StackConfig
from structpe.nn.stack import Stack
from structpe.pictures._plot import PictureError
from structpe.positions import Dims, PositionModel, Sources, Sum
from structpe.positions.build import Config, build
from structpe.structure import Structure
from structpe.tasks.positions import fitted
from structpe.terms import Lookup, SparsePairs, Terms

__all__ = [
    "QUANTITIES",
    "Patterns",
    "Quantity",
    "Untrained",
    "begin",
    "bias_of",
    "listening",
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

        Scores are determined up to a constant for each row, which does not change the softmax; here the mean is 0.
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
            PictureError: the model adds nothing to scores, or the quantity does not exist.
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
            *(dims.width, dims.layers, dims.heads),
            message_passing=None,
            feedforward=2 * dims.width,
            norm="layer",
            norm_first=True,
            kernel="dense",
        )
        encoder = Stack(config, position).double().eval()
        x = torch.randn(dims.width, dtype=torch.float64).expand(1, structure.unit_count, -1)
    positions = encode([structure], position.encodings).to(torch.device("cpu"), torch.float64)
    try:
        with listening(encoder) as heard:
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
def listening(model: nn.Module) -> Iterator[list[Patterns]]:
    """Record each attention of the encoder of a model while it runs on one structure, layer by layer."""
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
    """The patterns of all layers as one.

    Raises:
        PictureError: there was no attention.
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


def bias_of(terms: Terms, heads: int, n: int, m: int) -> Tensor | None:
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
    bias = None if mixed else bias_of(terms, q.shape[1], q.shape[2], k.shape[2])
    return Patterns(weights_of(q, k, terms)[:1], None if bias is None else bias[:1])
