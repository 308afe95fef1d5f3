"""Scores corrected by a network over the scores and biases of all heads (DAPE)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.dropout import dropout
from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Positions, Site, Spec, build
from structpe.positions.batch import of_arity
from structpe.positions.block import CachedBlock, ranks, softmax
from structpe.positions.by_rows import Ranges, by_rows, cut
from structpe.positions.tables import UNBOUND, by_head
from structpe.precision import exactly, wide, widened
from structpe.terms import Lookup, SparsePairs, Terms

__all__ = ["DAPE", "DAPEV2", "KERPLE", "Bias", "ScoreModel"]


Bias: TypeAlias = str | dict[str, Any]
"""Plain data of a position model that gives biases."""

KERPLE: Bias = {"name": "kerple-log", "sharing": "none"}


class ScoreModel(CachedBlock):
    """s + b + f(s, b) for the scaled scores s and the biases b of a position model; a variant defines f.

    Args:
        bias: name of the position model that gives b, or a mapping with its options.
        encodings: further ones.
        hidden: w.

    Raises:
        PositionError: the other model does more than add a bias.
    """

    def __init__(self, dims: Dims, bias: Bias, encodings: Sequence[Encoding] = (), **sizes: int) -> None:
        inner = build(bias, dims)
        every = dict.fromkeys((*encodings, *inner.encodings))
        super().__init__(dims, list(every), bias=True, inner=inner.claimed_params(), **sizes)
        if inner.sites != {"terms"} or inner.own_attention:
            raise PositionError(
                f"position model {self.name!r} corrects the bias of another; {inner.name!r} gives none alone"
            )
        self.inner = inner

    def prepare(self, positions: Positions) -> Any:
        return self.inner.prepare(positions)

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Any, site: Site) -> Tensor:
        (b, h, n, _), m = q.shape, k.shape[2]
        terms = self.given(prepared, site)
        for mask in terms.mask:
            seen = seen & mask
        tables, tensors = self.biases(terms, (b, n, m))
        weights = self.weights(site.layer)
        ones = torch.ones(b, h, n if site.dropout else 0, m, dtype=wide(q).dtype, device=q.device)
        noise = [dropout(ones, site.dropout)] if site.dropout else []
        counts = len(tensors), len(noise), 2, len(tables), len(weights)

        def mix(block: Ranges, q: Tensor, seen: Tensor, *given: Tensor) -> tuple[Tensor]:
            each = iter(given)
            parts, kept, (k, v), mine, parameters = ([next(each) for _ in range(count)] for count in counts)
            parts += [by_head(x, table, block[0]) for x, table in zip(tables, mine, strict=True)]
            score = self.scores(q, k)
            bias = sum(parts, torch.zeros_like(score))
            changed = self._corrected(torch.cat([score, bias], dim=1), seen, prepared, parameters)
            mixing = softmax(score + bias + changed, seen)
            for factor in kept:
                mixing = mixing * factor
            return (mixing.to(v.dtype) @ v,)

        rows = [q, *(x.expand(-1, -1, n, -1) for x in (seen, *tensors)), *noise]
        blocks = cut(n, b * m * (8 * h + 2 * self.sizes["w"]), q.device)
        (out,) = by_rows(mix, blocks, rows, [k, v, *(x.table for x in tables), *weights])
        return out

    def _corrected(self, both: Tensor, seen: Tensor, prepared: Any, parameters: Sequence[Tensor]) -> Tensor:
        """f, in blocks of its own: it has several times as many numbers as all else, and is soon computed again."""

        def correct(block: Ranges, both: Tensor, seen: Tensor, *parameters: Tensor) -> tuple[Tensor]:
            del block
            return (exactly(self.correction)(both, seen, prepared, parameters),)

        b, _, n, m = both.shape
        blocks = cut(n, b * m * 8 * self.sizes["w"], both.device)
        return by_rows(correct, blocks, [both, seen.expand(-1, -1, n, -1)], parameters)[0]

    def given(self, prepared: Any, site: Site) -> Terms:
        """The terms of the other model in a layer.

        Raises:
            PositionError: they have more than a bias.
        """
        terms = self.inner.terms(prepared, replace(site, cache=None))
        known = {"bias", "mask"} if self._of_keys() else {"bias"}
        if lost := terms.used() - known:
            raise PositionError(
                f"position model {self.name!r} corrects the bias of another; {self.inner.name!r} gives "
                f"{', '.join(sorted(lost))} too"
            )
        return terms

    def biases(self, terms: Terms, shape: tuple[int, int, int]) -> tuple[list[Lookup], list[Tensor]]:
        """The biases from tables, and as tensors (b or 1, h or 1, n or 1, m or 1) for the shape b, n, m."""
        tables = [each for each in terms.bias if isinstance(each, Lookup)]
        tensors = [each for each in terms.bias if isinstance(each, Tensor)]
        if self._of_keys():
            # From the query's own key on: a softmax does not see the difference, but f does.
            tensors = [each - each[..., -shape[1] :].mT for each in tensors]
        listed = [each.dense(*shape).movedim(3, 1) for each in terms.bias if isinstance(each, SparsePairs)]
        return tables, tensors + listed

    def _of_keys(self) -> bool:
        return getattr(self.inner, "of_keys", False)

    @abstractmethod
    def weights(self, layer: int) -> list[Tensor]:
        """The parameters of f of a layer, in float32 at least."""

    @abstractmethod
    def correction(self, both: Tensor, seen: Tensor, prepared: Any, weights: Sequence[Tensor]) -> Tensor:
        """(b, h, n, m) f of the scores and biases (b, 2h, n, m), which are of float32 at least, and its parameters."""


class DAPE(ScoreModel, name="dape"):
    """DAPE: biases corrected by a network that sees scores and biases of all heads (Zheng et al. 2024).

    softmax_j(s_ij + b_ij + f(s_ij, b_ij)),  s_ij = q_i.k_j / sqrt(d_h),  f = W_2 leaky(W_1 [s; b] + c_1) + c_2.

    Data-adaptive positions: f sees the scores and biases of all heads of one pair, and corrects the bias. b are those
    of another position model, by default of ``kerple-log`` with numbers of each layer (DAPE-Kerple). W_1 (w, 2h) and
    W_2 (h, w) are learned for each layer; leaky is the leaky ReLU of slope 0.01. (Zheng et al. 2024, section 3.3,
    equation 4, and their code; w = 32.) The bias of any model fits, on any structure: ``fire``, ``alibi``, ``t5`` by
    distance in a graph, and so on; that of ``alibi-causal`` is counted from the query on, as in DAPE-ALiBi, and keys
    ahead do not attend. Compared with the authors' code in float64.

    It takes 2h + w numbers per pair. A decoder keeps keys and values, and may use it if it may use the other model.
    """

    spec = Spec(
        "zheng2024",
        "sequence",
        UNBOUND("inner + (4*(d*d + d) + 3*h*w + w + h)*l"),
        note="a block counts its projections; inner are those of the model that gives the bias",
    )

    def __init__(self, dims: Dims, bias: Bias = KERPLE, hidden: int = 32) -> None:
        super().__init__(dims, bias, w=hidden)
        self.networks = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * dims.heads, hidden), nn.LeakyReLU(), nn.Linear(hidden, dims.heads))
            for _ in range(dims.layers)
        )

    def weights(self, layer: int) -> list[Tensor]:
        return list(widened(self.networks[layer]).parameters())

    def correction(self, both: Tensor, seen: Tensor, prepared: Any, weights: Sequence[Tensor]) -> Tensor:
        into, into_bias, out, out_bias = weights
        # Channels first: both products then have the pairs side by side, and copy nothing.
        b = len(both)
        hidden = torch.baddbmm(into_bias[:, None], into.expand(b, -1, -1), both.flatten(2))
        made = torch.baddbmm(out_bias[:, None], out.expand(b, -1, -1), functional.leaky_relu_(hidden))
        return made.view(b, -1, *both.shape[2:])


class DAPEV2(ScoreModel, name="dape-v2"):
    """DAPE V2: scores and biases as a feature map, convolved along the keys (Zheng et al. 2024).

    softmax_j(s_ij + b_ij + f(s_i, b_i)_j), f two convolutions along the keys, a leaky ReLU between.

    As ``dape``, but the correction of a pair also sees the scores and biases of neighbouring keys: filters (w, 2h, k)
    and (h, w, k), k odd, of each layer; with k = 1 this is ``dape``. What does not attend, such as keys after the
    query, is 0 in the input. (Zheng et al. 2024, DAPE V2, section 3, "DAPE_1x3"; the authors' code: w = 32, k = 3.)
    Compared with that code in float64.

    In the code a text ends the map on the right: between its convolutions it has zeros there, and in the row of any
    other query what the first convolution made of zeros: the last unit is treated differently from all others. Here
    each row goes on with zeros as far as filters reach: a decoder gets the same numbers step by step. Keys are in the
    order of ``encoding``.

    Args:
        encoding: one number per unit, by which keys are neighbours.
        window: k.

    Raises:
        PositionError: the window is even, or the encoding is of pairs, or gives a vector per unit.
    """

    spec = Spec(
        "zheng2024v2",
        "sequence",
        Cells(
            "B", "MAM", learnable=True, recurring=True, unbound=True, params="inner + (4*(d*d + d) + 3*h*w*k + w + h)*l"
        ),
        note="a block counts its projections; relative but for filters that reach over the start of a text",
    )

    def __init__(
        self, dims: Dims, bias: Bias = KERPLE, encoding: Encoding = Order(), hidden: int = 32, window: int = 3
    ) -> None:
        if window % 2 == 0:
            raise PositionError(f"position model 'dape-v2' has filters of an odd width; given is window={window}")
        self.order = of_arity(self.name, encoding, 1)
        super().__init__(dims, bias, [encoding], w=hidden, k=window)
        self.window = window
        self.first = nn.ModuleList(nn.Conv2d(2 * dims.heads, hidden, (1, window)) for _ in range(dims.layers))
        self.second = nn.ModuleList(nn.Conv2d(hidden, dims.heads, (1, window)) for _ in range(dims.layers))

    def prepare(self, positions: Positions) -> tuple[Any, Tensor]:
        """What the other model prepares, and the rank of each unit (b or 1, m)."""
        return self.inner.prepare(positions), ranks(self.name, self.order, positions)

    def given(self, prepared: Any, site: Site) -> Terms:
        return super().given(prepared[0], site)

    def weights(self, layer: int) -> list[Tensor]:
        return [*widened(self.first[layer]).parameters(), *widened(self.second[layer]).parameters()]

    def correction(self, both: Tensor, seen: Tensor, prepared: Any, weights: Sequence[Tensor]) -> Tensor:
        into, into_bias, out, out_bias = weights
        (b, twice, n, m), k = both.shape, into.shape[-1]
        ranks = prepared[1], prepared[1].argsort(dim=-1)
        rank, order = (each[:, None, None].expand(b, twice, n, -1) for each in ranks)
        read = both.masked_fill(~seen, 0).gather(-1, order)
        reach = self.window // 2
        # Convolutions as products, whose gradients are faster: of k shifted maps, and then to k maps that are shifted.
        # On the left the hidden map ends with the text, as in the code; on the right it goes on.
        padded, width = functional.pad(read, (reach, 2 * reach)), m + reach
        shifted = torch.stack([padded[..., at : at + width] for at in range(k)], dim=2).flatten(1, 2).flatten(2)
        hidden = torch.baddbmm(into_bias[:, None], into.flatten(1).expand(b, -1, -1), shifted)
        filters = out[:, :, 0].permute(2, 0, 1).flatten(0, 1)  # (k h, w)
        made = (filters @ functional.leaky_relu_(hidden)).view(b, k, -1, n, width)
        made = functional.pad(made, (reach, 0))
        corrected = sum((made[:, at, ..., at : at + m] for at in range(k)), out_bias[:, None, None])
        return corrected.gather(-1, rank[:, : self.dims.heads])
