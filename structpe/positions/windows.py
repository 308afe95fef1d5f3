"""Masks: which pairs of units attend, by window, direction or edge."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.dropout import dropout
from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import GridRank
from structpe.encodings.expander import Expander
from structpe.encodings.order import Order, Window
from structpe.positions import Block, Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import clipped, of_arity, of_listed_pairs
from structpe.positions.block import allowed, without_heads
from structpe.positions.by_rows import Ranges, by_rows, cut
from structpe.positions.places import UnitModel, check_shape, counts
from structpe.terms import SparsePairs, Terms

__all__ = ["DiSAN", "DiSANBlock", "Exphormer", "SlidingWindow", "SwinWindows", "visible"]


def visible(direction: str, queries: Tensor, keys: Tensor) -> Tensor:
    """(b, n, m) which keys are strictly before the query (``forward``), after it (``backward``), or elsewhere."""
    t, s = queries[..., None], keys[:, None]
    return s < t if direction == "forward" else s > t if direction == "backward" else s != t


class SlidingWindow(PositionModel, name="sliding-window"):
    """Attention within a window that slides along the text (Beltagy et al. 2020).

    Unit i attends to unit j only if |i - j| <= r; within the window attention is unchanged.

    The reach r is half of the window w of the paper: w / 2 units on each side, and the unit itself. Time and memory are
    linear in the number of units. (Beltagy, Peters and Cohan 2020, "Longformer", section 3.1; survey, section 5.1;
    Child et al. 2019 have local windows of a decoder, which are this one and a causal mask.) l layers reach l r units.
    The paper's gaps within a window and its tokens that attend to all are not included. No offset within the window is
    distinguished from another: add a model that does.

    Args:
        encoding: which pairs attend; r is its ``reach``. Any other encoding of sparse pairs can be used.

    Raises:
        PositionError: the encoding does not list pairs.
    """

    spec = Spec(
        "beltagy2020", "sequence", Cells("R", "MAM", learnable=False, recurring=True, unbound=False, params="0")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Window()) -> None:
        super().__init__(dims, [of_listed_pairs(self.name, encoding)])

    def terms(self, prepared: Positions, site: Site) -> Terms:
        listed: SparsePairs = prepared[self.encodings[0]]
        return Terms(pairs=(listed.pairs,))


class SwinWindows(PositionModel, name="swin-windows"):
    """Attention within windows of an image, shifted in every other layer (Liu et al. 2021, Swin).

    i and j attend to each other if floor((c_i - s) / W) = floor((c_j - s) / W) on both axes of the image.

    c are coordinates, W the length of the window on an axis, s = 0 in layers 0, 2, ..., and W/2, rounded down, in
    layers 1, 3, ...; s = 0 too on an axis no longer than W. (Liu et al. 2021, section 3.2. They roll the image by s and
    mask the pairs that this joins: the same pairs are left.) With ``swin``, as the sum ["swin", "swin-windows"], it is
    Swin's attention, at the cost of all pairs. Their code shrinks the window to a square where the image is smaller on
    one axis; here the other axis keeps its length. Units without a place in the grid attend, and are attended to,
    everywhere.

    Args:
        encoding: per unit and axis (count, count of the line).
        window: (H, W).

    Raises:
        PositionError: an invalid window, or an encoding that does not give such counts.
    """

    spec = Spec("liu2021", "grid", Cells("A", "MAM", learnable=False, recurring=True, unbound=False, params="0"))

    def __init__(self, dims: Dims, encoding: Encoding = GridRank(), window: tuple[int, int] = (7, 7)) -> None:
        check_shape(self.name, window, 2)
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.window = tuple(window)

    def prepare(self, positions: Positions) -> list[Tensor]:
        """(b, 1, n, m) which pairs are in one window, in even layers and in odd ones."""
        encoding = self.encodings[0]
        queries = counts(self.name, encoding, positions.queries(encoding), 2)
        keys = counts(self.name, encoding, positions[encoding], 2)
        return [self._together(queries, keys, shifted)[:, None] for shifted in (False, True)]

    def terms(self, prepared: list[Tensor], site: Site) -> Terms:
        return Terms(mask=(prepared[site.layer % 2],))

    def _together(self, queries: Tensor, keys: Tensor, shifted: bool) -> Tensor:
        mine, others = self._windows(queries, shifted), self._windows(keys, shifted)
        together = (mine[:, :, None] == others[:, None]).all(-1)
        nowhere = (queries[:, :, None, 0, 1] == 0) | (keys[:, None, :, 0, 1] == 0)
        return together | nowhere

    def _windows(self, ranks: Tensor, shifted: bool) -> Tensor:
        place, whole = ranks.unbind(-1)
        length = torch.tensor(self.window, device=ranks.device)
        shift = torch.where(whole > length, length // 2, 0) if shifted else torch.zeros_like(whole)
        return (place - 1 - shift).div(length, rounding_mode="floor")


class DiSAN(UnitModel, name="disan"):
    """Directional masks: heads that attend only backwards or only forwards (Shen et al. 2018, DiSAN).

    Key s attends for query t only where s < t (``forward``), s > t (``backward``), or s != t (``diagonal``).

    With ``both``, the first half of the heads is forward, rounded up, the other backward; DiSAN has one network of
    each. (Shen et al. 2018, section 4.1, eq. 13; survey, section 4.1.2.) The masks are strict, as in the authors' code:
    the first unit attends to nothing in a forward head, and gets zeros there. t and s are the places of units, or any
    other number per unit, such as its depth in a tree.

    The survey's row is about these masks. DiSAN's own attention weighs each channel separately: ``disan-block``. Table
    1 marks them unbound, since they have no table; but they only distinguish before and after.

    Args:
        direction: which keys the heads attend to.
    """

    spec = Spec(
        "shen2018",
        "sequence",
        Cells("R", "MAM", learnable=False, recurring=True, unbound=False, params="0"),
        table1=Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
        note="masks work at any length, but do not distinguish keys before the query",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        direction: Literal["both", "forward", "backward", "diagonal"] = "both",
    ) -> None:
        super().__init__(dims, encoding)
        self.direction = direction

    def prepare(self, positions: Positions) -> Terms:
        """The terms of every layer."""
        places = self.places(positions)
        if self.direction != "both":
            return Terms(mask=(visible(self.direction, *places)[:, None],))
        back, ahead = (visible(direction, *places) for direction in ("forward", "backward"))
        forward = (self.dims.heads + 1) // 2
        return Terms(mask=(torch.stack([back] * forward + [ahead] * (self.dims.heads - forward), dim=1),))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared


class Exphormer(PositionModel, name="exphormer"):
    """Attention along edges and a random expander, scores weighed by the type of the edge (Shirzad et al. 2023).

    s_ij = clip(sum_c q_ic k_jc e_ijc / sqrt(d_h), -5, 5) for listed pairs only, e_ij = W E[type of ij] of the layer.

    The pairs are those of edges, of a random expander, and of the virtual node: see :class:`Expander`. E (T, w) embeds
    their types and is shared by the layers; W (d, w) without bias is of each. (Shirzad et al. 2023, section 3; the
    authors' code, its attention.) The expander is drawn once per structure, in training and evaluation, as in the code.

    The code adds 1e-6 to the denominator of the softmax; the features of its edges may be anything, here they are
    labels. It gives virtual nodes a separate state outside the graph; here they are nodes, of
    :func:`structpe.transforms.nodes.with_virtual_node`, with the embedding of their text.

    Args:
        encoding: the listed pairs and their types.
        width: w; None for d, as in the code.
    """

    spec = Spec(
        "shirzad2023",
        "graph",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="T*w + l*d*w"),
        note="its edges are relative, but its random ones are another graph for another number of nodes",
    )

    def __init__(self, dims: Dims, encoding: Expander = Expander(), width: int | None = None) -> None:
        width = dims.width if width is None else width
        super().__init__(dims, [encoding], T=encoding.size, w=width)
        self.types = nn.Parameter(torch.randn(encoding.size, width))
        self.weigh = nn.ModuleList(nn.Linear(width, dims.width, bias=False) for _ in range(dims.layers))

    def terms(self, prepared: Positions, site: Site) -> Terms:
        listed: SparsePairs = prepared[self.encodings[0]]

        def weights(types: Tensor) -> Tensor:
            of_types: Tensor = self.weigh[site.layer](self.types[types])
            return of_types.view(len(types), self.dims.heads, self.dims.head) - 1  # the product is added to q.k

        return Terms(product=(listed.map(weights),), act=clipped, pairs=(listed.pairs,))


class _Attention(nn.Module):
    """One layer of :class:`DiSANBlock`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.query = nn.Linear(width, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.gate_hidden = nn.Linear(width, width)
        self.gate_sum = nn.Linear(width, width)
        self.gate_bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, seen: Tensor, dropped: float) -> Tensor:
        """(b, n, d) from x (b, n, d) and (b or 1, n, n) which keys are attended to."""
        h = functional.elu(self.hidden(x))
        b, n, d = h.shape
        noise = [dropout(h.new_ones(b, n, n * d), dropped)] if dropped else []
        blocks = cut(n, 6 * b * n * d, x.device)
        rows = [(self.query(h) + self.bias) / 5, seen, *noise]
        (s,) = by_rows(_summed, blocks, rows, [(self.key(h) / 5).mT, h.mT])
        g = torch.sigmoid(self.gate_hidden(h) + self.gate_sum(s) + self.gate_bias)
        out: Tensor = g * h + (1 - g) * s
        return out


def _summed(block: Ranges, q: Tensor, seen: Tensor, *given: Tensor) -> tuple[Tensor]:
    """(b, c, d) the sums of c queries; keys and what is summed are (b, d, m): a softmax is along what is contiguous."""
    del block
    *noise, k, h = given
    # Scores are from -5 to 5. What is added hides a key without a pass of its own, for values and for gradients.
    hidden = torch.zeros_like(seen, dtype=q.dtype).masked_fill(~seen, torch.finfo(q.dtype).min / 2)
    weights = torch.add(hidden[:, :, None], torch.tanh(q[..., None] + k[:, None]), alpha=5).softmax(-1)
    for factor in noise:
        weights = weights * factor.view(*factor.shape[:2], k.shape[2], -1).transpose(2, 3)
    summed = (weights * h[:, None].to(weights.dtype)).sum(-1)
    return (summed * seen.any(-1, keepdim=True),)  # 0 without a key


class DiSANBlock(Block, UnitModel, name="disan-block"):
    """Directional self-attention with a weight per channel (Shen et al. 2018, DiSAN).

    o_i = g_i h_i + (1 - g_i) sum_j softmax_j(5 tanh((W_1 h_j + W_2 h_i + b) / 5)) h_j, a softmax for each channel.

    h = elu(W x + c) (b, n, d); g_i = sigmoid(W_h h_i + b_h + W_s s_i + b_s + b_o), s_i being that sum. Keys are those
    before the query (``forward``), after it (``backward``), or all but itself (``diagonal``); without such keys, s_i =
    0. W, W_1, W_2, W_h, W_s are (d, d), all else (d), of each layer. (Shen et al. 2018, sections 3.2 and 4.1; the
    authors' code, which has the biases b_h and b_s in addition to b_o.)

    There are no heads. DiSAN concatenates a forward and a backward one, and pools the result into one vector: neither
    fits a layer whose output is as wide as its input. Memory grows with n^2 d. Dropout of the code is left to layers.

    Args:
        direction: which keys units attend to.

    Raises:
        UnsupportedTerm: which pairs attend differs by head.
    """

    heads = False
    drops = True
    spec = Spec(
        "shen2018",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="(5*d*d + 5*d)*l"),
        note="a block counts its projections; its masks are its only position information",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        direction: Literal["forward", "backward", "diagonal"] = "forward",
    ) -> None:
        super().__init__(dims, encoding)
        self.direction = direction
        self.attentions = nn.ModuleList(_Attention(dims.width) for _ in range(dims.layers))

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, n) which keys are in the direction."""
        _, places = self.places(positions)
        return visible(self.direction, places, places)

    def attend(self, x: Tensor, prepared: Tensor, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        among = without_heads(self.name, allowed(self.name, terms, x))
        return self.attentions[site.layer](x, prepared & among, site.dropout), prepared
