"""A recurrent network over the labels of shortest paths, on both sides of the score (Cai and Lam 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.depth import Depth
from structpe.encodings.label_path import LabelPath
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import holds, indices, of_whole
from structpe.positions.paths._path_attention import of_pairs
from structpe.positions.paths._path_trie import PathGRU
from structpe.terms import Lookup, Terms

__all__ = ["Cai"]


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
        dims: sizes of the Transformer.
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
        encoding: LabelPath = LabelPath(limit=8, longer="symbol", paths=8),
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
    batch = torch.arange(len(paths.rows), device=counts.device)[:, None, None]
    chosen = paths.rows[batch, paths.places()]
    draw = torch.randint(1 << 62, chosen.shape, device=chosen.device) % counts[chosen]
    first = counts.cumsum(0) - counts
    return of_pairs(r, number[first[chosen] + draw])
