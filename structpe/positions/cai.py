"""Label paths read by a recurrent network in both directions (Cai and Lam 2020).

The network reads what paths have in common once. Shapes: p paths, L labels at most, N beginnings, w width of the
network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from structpe.dropout import dropout
from structpe.encodings.base import Encoding
from structpe.encodings.label_path import LabelPath
from structpe.encodings.trees import Depth
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import holds, indices, of_whole
from structpe.positions.path_labels import rows_of_pairs
from structpe.terms import Lookup, Terms

__all__ = ["Cai", "PathGRU", "Trie"]


@dataclass(frozen=True, eq=False)
class Trie:
    """The distinct beginnings of paths; each is a node, those of one label first, then those of two, and so on.

    Attributes:
        levels: of the nodes of each length their last labels, and which nodes of the level before they continue.
        nodes: (p, L) the node of the first t + 1 labels of each path; of no meaning after its end.
    """

    levels: list[tuple[Tensor, Tensor]]
    nodes: Int[Tensor, "p L"]

    @classmethod
    def of(cls, paths: Int[Tensor, "p L"]) -> Trie:
        """That of paths, -1 after their ends."""
        # Sorted paths with a common beginning follow one another: a new beginning differs from the row before.
        ordered, place = torch.unique(paths, dim=0, return_inverse=True)
        differs = (ordered[1:] != ordered[:-1]).cumsum(1) > 0
        new = torch.cat([torch.ones_like(ordered[:1], dtype=torch.bool), differs]) & (ordered >= 0)
        number = new.cumsum(0) - 1
        levels = []
        for t in range(paths.shape[1]):
            rows = new[:, t].nonzero()[:, 0]
            levels.append((ordered[rows, t], number[rows, max(t - 1, 0)]))
        sizes = new.sum(0)
        return cls(levels, (number + sizes.cumsum(0) - sizes)[place])


class PathGRU(nn.GRU):
    """The last states (p, 2 w) of the upper layer of a bidirectional GRU of two layers, for paths of labels.

    It has the parameters of ``torch.nn.GRU`` and the same result. The lower layer reads each distinct beginning of a
    path, and backwards each distinct end, once. The states of the upper layer depend on whole paths; what it projects
    are those of beginnings and ends, once each.

    Dropout, of labels before the network and of states between the layers, is drawn once per beginning or end.

    Args:
        embedding: width of the embedded labels.
        hidden: w.
        dropout: probability.
    """

    def __init__(self, embedding: int, hidden: int, dropout: float) -> None:
        super().__init__(embedding, hidden, num_layers=2, bidirectional=True, dropout=dropout, batch_first=True)

    def of_paths(self, paths: Int[Tensor, "p L"], table: Float[Tensor, "V e"]) -> Float[Tensor, "p w2"]:
        """Of paths of labels, -1 after the end, with the embeddings of labels."""
        lengths = (paths >= 0).sum(1)
        place = torch.arange(paths.shape[1], device=paths.device)
        back = (lengths[:, None] - 1 - place).clamp(min=0)
        backwards = torch.where(place < lengths[:, None], paths.gather(1, back), -1)
        tries = Trie.of(paths), Trie.of(backwards)
        forward, backward = (
            self._dropped(self._lower(trie, table, direction))
            for trie, direction in zip(tries, ("", "_reverse"), strict=True)
        )
        # Label t of a path ends its beginning of t + 1 labels, and begins its end of the other labels.
        begins, ends = (trie.nodes for trie in tries)
        order = lengths.argsort(descending=True, stable=True)
        active = (lengths[:, None] > place).sum(0).tolist()
        last = []
        for direction, first, second in (
            ("", begins, ends.gather(1, back)),
            ("_reverse", begins.gather(1, back), ends),
        ):
            # (N, 3 w) what beginnings, and ends, contribute to the gates of the upper layer.
            weight, bias = self._of("ih", 1, direction)
            of_forward, of_backward = weight.chunk(2, dim=1)
            both = functional.linear(forward, of_forward, bias), functional.linear(backward, of_backward)
            last.append(self._upper(both, (first[order], second[order]), active, direction))
        return torch.cat(last, dim=1)[order.argsort()]

    def _lower(self, trie: Trie, table: Tensor, direction: str) -> Tensor:
        """(N, w) the state after each beginning."""
        weight, bias = self._of("ih", 0, direction)
        dropping = self.training and self.dropout > 0
        projected = table if dropping else functional.linear(table, weight, bias)
        states: list[Tensor] = []
        for labels, parents in trie.levels:
            entering = projected.index_select(0, labels)
            if dropping:
                entering = functional.linear(self._dropped(entering), weight, bias)
            before = states[-1].index_select(0, parents) if states else None
            states.append(self._step(entering, before, 0, direction))
        return torch.cat(states)

    def _upper(self, both: tuple[Tensor, Tensor], where: tuple[Tensor, Tensor], active: list[int], way: str) -> Tensor:
        """(p, w) the last states of paths, the longest first.

        Args:
            both: what beginnings and ends contribute.
            where: (p, L) the beginning and the end that each path reads at each step.
            active: number of paths that have a label at each step.
            way: the direction.
        """
        flat = [torch.cat([nodes[:count, step] for step, count in enumerate(active)]) for nodes in where]
        entering = both[0].index_select(0, flat[0]) + both[1].index_select(0, flat[1])
        state: Tensor | None = None
        finished: list[Tensor] = []
        for mine in torch.split(entering, active):
            if state is not None and len(mine) < len(state):
                finished.append(state[len(mine) :])
                state = state[: len(mine)]
            if len(mine):
                state = self._step(mine, state, 1, way)
        return torch.cat([*([] if state is None else [state]), *finished[::-1]])

    def _step(self, entering: Tensor, state: Tensor | None, layer: int, direction: str) -> Tensor:
        """(r, w) the next state: r = s(x_r + W_r h), z = s(x_z + W_z h), h' = (1 - z) tanh(x_n + r W_n h) + z h."""
        weight, bias = self._of("hh", layer, direction)
        if state is None:
            state = entering.new_zeros(len(entering), self.hidden_size)
        stepped: Tensor = _Step.apply(entering, functional.linear(state, weight, bias), state)  # type: ignore[no-untyped-call]
        return stepped

    def _of(self, kind: str, layer: int, direction: str) -> tuple[Tensor, Tensor]:
        """The weight and the bias of the input (``ih``) or the state (``hh``)."""
        name = f"{kind}_l{layer}{direction}"
        return getattr(self, f"weight_{name}"), getattr(self, f"bias_{name}")

    def _dropped(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout) if self.training else x


class _Step(Function):
    """The next state of a GRU. Its gradients are written into one tensor, without a copy for each gate."""

    @staticmethod
    def forward(ctx: Any, entering: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
        width = state.shape[1]
        gates = (entering[:, : 2 * width] + recurrent[:, : 2 * width]).sigmoid_()
        reset, update = gates.chunk(2, dim=1)
        new = torch.addcmul(entering[:, 2 * width :], reset, recurrent[:, 2 * width :]).tanh_()
        ctx.save_for_backward(gates, new, recurrent, state)
        return torch.lerp(new, state, update)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gates, new, recurrent, state = ctx.saved_tensors
        width = state.shape[1]
        reset, update = gates.chunk(2, dim=1)
        of_entering = torch.empty_like(recurrent)
        of_reset, of_update, of_new = of_entering.chunk(3, dim=1)
        torch.mul(grad, 1 - update, out=of_new).mul_(1 - new * new)
        torch.mul(of_new, recurrent[:, 2 * width :], out=of_reset)
        torch.mul(grad, state - new, out=of_update)
        of_entering[:, : 2 * width] *= gates * (1 - gates)
        of_recurrent = of_entering.clone()
        of_recurrent[:, 2 * width :] *= reset
        return of_entering, of_recurrent, grad * update


class Cai(PositionModel, name="cai"):
    """A recurrent network over the labels of shortest paths, on both sides of the score (Cai and Lam 2020).

    s_ij = (q_i + a_ij).(k_j + b_ij) / sqrt(d_h),  [a; b] = W r,  r_ij = U GRU(E[labels of the path ij]) + u.

    E (V, e) embeds labels, a label in the reverse direction being a separate label; GRU is bidirectional, has two
    layers of w units per direction, and gives the last states of its upper layer (2w); U (d, 2w). E, GRU and U are
    shared by all layers, W (2d, d) without bias is of each layer. With several shortest paths, r is that of one drawn
    at random for each pair and step in training, and the mean of all in evaluation. At the input x_t + D[depth of t], D
    zero at first. (Cai and Lam 2020, sections 3.2 and 3.3; survey, eq. 30.) Its lower layer runs once per distinct
    beginning of a path and, backwards, once per distinct end; its upper layer once per distinct path.

    As in the authors' code, where the survey differs: directions of edges are kept; r is added after the projections of
    query and key, through its own W; the absolute position is a learned table of depths. Paths of more than 8 labels
    are one symbol. Not included: the node ``<CLS>`` that the authors add to each graph, with its own three labels;
    their count of shortest paths has no limit, ours has ``encoding.paths``.

    Args:
        encoding: paths of labels.
        depth: integers 0, 1, ... per unit.
        embedding: e.
        hidden: w.
        dropout: of the embedded labels and between the layers of the network, once per distinct beginning or end of a
            path; 0.2 in the code, per path.
        depths: length of D.

    Raises:
        PositionError: a batch has a depth of ``depths`` or more.
    """

    spec = Spec(
        "cai2020",
        "graph",
        Cells(
            "B",
            "both",
            learnable=True,
            recurring=True,
            unbound=False,
            params="V*e + 6*w*(e + 3*w + 4) + 6*w*w + d*(2*w + 1) + 2*d*d*l + n*d",
        ),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="7*d*d + 3*d"),
        note="the code has a table of 32 depths, one symbol for paths beyond 8 labels, and a network narrower than d",
        not_compiled="its network is a GRU, which torch.compile does not trace",
        not_exported="how many beginnings its paths have depends on the batch",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: LabelPath = LabelPath(max_length=8, longer="symbol", paths=8),
        depth: Encoding = Depth(),
        embedding: int = 100,
        hidden: int = 256,
        dropout: float = 0.0,
        depths: int = 32,
    ) -> None:
        sizes = {"V": encoding.size, "e": embedding, "w": hidden, "n": depths}
        super().__init__(dims, [encoding, of_whole(self.name, depth)], **sizes)
        self.paths = _PathEncoder(encoding.size, embedding, hidden, dims.width, dropout)
        self.split = nn.ModuleList(nn.Linear(dims.width, 2 * dims.width, bias=False) for _ in range(dims.layers))
        for weight in self.split.parameters():
            nn.init.normal_(weight, std=0.02)
        self.depths = nn.Parameter(torch.zeros(depths, dims.width))

    def inputs(self, x: Tensor, prepared: tuple[Lookup, Tensor]) -> Tensor:
        _, depth = prepared
        if holds((depth >= len(self.depths)).any()):
            raise PositionError(
                f"position model 'cai' has {len(self.depths)} depths, this batch needs {int(depth.max()) + 1}; "
                f"build it with a larger 'depths'"
            )
        return x + self.depths[depth]

    def prepare(self, positions: Positions) -> tuple[Lookup, Tensor]:
        """The r of each distinct set of paths, in training of each distinct path; and the depths of the queries."""
        depth = indices(self.name, self.encodings[1], positions.queries(self.encodings[1]))
        paths: Lookup = positions[self.encodings[0]]
        sets = paths.table[:, None] if paths.table.ndim == 2 else paths.table
        there = sets[..., 0] >= 0
        distinct, number = torch.unique(sets[there], dim=0, return_inverse=True)
        r = self.paths(distinct)
        if self.training and sets.shape[1] > 1:
            return _drawn(r, paths, number, there.sum(1)), depth
        return paths.map(lambda _: _means(r[number], there)), depth

    def terms(self, prepared: tuple[Lookup, Tensor], site: Site) -> Terms:
        r, _ = prepared
        both = self.split[site.layer](r.table).unflatten(-1, (2, self.dims.heads, self.dims.head))
        a, b = both.unbind(1)
        of_paths = (a * b).sum(-1) / math.sqrt(self.dims.head)
        return Terms(key=(r.map(lambda _: b),), query=(r.map(lambda _: a),), bias=(r.map(lambda _: of_paths),))


class _PathEncoder(nn.Module):
    """U GRU(E[path]) + u."""

    def __init__(self, labels: int, embedding: int, hidden: int, width: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(labels, embedding)
        self.network = PathGRU(embedding, hidden, dropout)
        self.out = nn.Linear(2 * hidden, width)
        nn.init.normal_(self.out.weight, std=0.02)
        nn.init.zeros_(self.out.bias)

    def forward(self, paths: Tensor) -> Tensor:
        """(p, width) from p paths (p, L) of labels, -1 after the end of a path, which is not read."""
        r: Tensor = self.out(self.network.of_paths(paths, self.embedding.weight))
        return r


def _means(r: Tensor, there: Tensor) -> Tensor:
    """(R, width) mean of each set, from the vectors (p, width) of all members of the sets, set by set."""
    owner = there.nonzero()[:, 0]
    sums = r.new_zeros(len(there), r.shape[1]).index_add(0, owner, r)
    return sums / there.sum(1, keepdim=True)


def _drawn(r: Tensor, paths: Lookup, number: Tensor, counts: Tensor) -> Lookup:
    """One path of its set for each pair, at random; ``number`` are the rows of r of all members, set by set."""
    chosen = rows_of_pairs(paths)
    draw = torch.randint(1 << 62, chosen.shape, device=chosen.device) % counts[chosen]
    first = counts.cumsum(0) - counts
    return _lookup(r, number[first[chosen] + draw])


def _lookup(table: Tensor, which: Tensor) -> Lookup:
    """The lookup x_ij = table[which_ij] for ``which`` (b, n, m): finds the rows that each structure uses."""
    first = torch.arange(len(which), device=which.device) * len(table)  # a code for each structure and row
    used, index = torch.unique(which + first[:, None, None], return_inverse=True)
    start = torch.searchsorted(used, first)
    structure = used // len(table)
    place = torch.arange(len(used), device=used.device) - start[structure]
    rows = used.new_zeros(len(which), int(place.max()) + 1)
    rows[structure, place] = used % len(table)
    return Lookup(table, rows, index - start[:, None, None])
