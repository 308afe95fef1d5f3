"""DAPE V2: scores and biases as a feature map, convolved along the keys (Zheng et al. 2024)."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions._checks import of_arity
from structpe.positions.blocks._cached import ranks
from structpe.positions.blocks._dape import KERPLE, Bias, ScoreModel
from structpe.precision import widened

__all__ = ["DAPEV2"]


class Prepared(NamedTuple):
    """What the inner model prepared, and the rank of each unit (b or 1, m)."""

    inner: Any
    rank: Tensor


class DAPEV2(ScoreModel, name="dape-v2"):
    """DAPE V2: scores and biases as a feature map, convolved along the keys (Zheng et al. 2024).

    softmax_j(s_ij + b_ij + f(s_i, b_i)_j), f two convolutions along the keys, a leaky ReLU between.

    As ``dape``, but the correction of a pair also sees the scores and biases of neighbouring keys: filters (w, 2h, k)
    and (h, w, k), k odd, of each layer; with k = 1 this is ``dape``. What does not attend, such as keys after the
    query, is 0 in the input. (Zheng et al. 2024, DAPE V2, section 3, "DAPE_1x3"; the authors' code: w = 32, k = 3.)
    Compared with that code in float64.

    In the code a text ends the map on the right: between its convolutions it has zeros there, and in the row of any
    other query what the first convolution made of zeros, so that the last unit is treated differently from all others.
    Here each row goes on with zeros as far as filters reach: a decoder gets the same numbers step by step. Keys are in
    the order of ``encoding``.

    Args:
        dims: sizes of the Transformer.
        bias: name of the position model that gives b, or a mapping with its options.
        encoding: one number per unit, by which keys are neighbours.
        hidden: w.
        window: k.

    Raises:
        PositionError: the window is even, the other model does something else than to add a bias, or the encoding gives
            a vector per unit.
        UnsupportedTerm: something else than which pairs attend is to act on attention.
    """

    spec = Spec(
        "zheng2024v2",
        "sequence",
        Cells(
            "B",
            "MAM",
            learnable=True,
            recurring=True,
            unbound=True,
            params="inner + (4*(d*d + d) + 3*h*w*k + w + h)*l",
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

    def prepare(self, positions: Positions) -> Prepared:
        return Prepared(self.inner.prepare(positions), ranks(self.name, self.order, positions))

    def biases(self, prepared: Prepared, site: Site, score: Tensor) -> Tensor:
        return super().biases(prepared.inner, site, score)

    def correction(self, both: Tensor, seen: Tensor, prepared: Prepared, site: Site) -> Tensor:
        rank = prepared.rank[:, None, None].expand(len(both), both.shape[1], both.shape[2], -1)
        read = both.masked_fill(~seen, 0).gather(-1, rank.argsort(dim=-1))
        reach = self.window // 2
        # On the left the hidden map ends with the text, as in the code; on the right it goes on.
        padded = functional.pad(read, (reach, 2 * reach))
        hidden = functional.leaky_relu(widened(self.first[site.layer])(padded))
        corrected: Tensor = widened(self.second[site.layer])(functional.pad(hidden, (reach, 0)))
        return corrected.gather(-1, rank[:, : self.dims.heads])
