"""Positions that each layer updates beside the content (Dwivedi et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.walks import RandomWalk
from structpe.positions import Block, Cells, Dims, Positions, Site, Spec
from structpe.positions.batch import width_of
from structpe.positions.block import LINKS, NONE, SELF, allowed, links, without_heads
from structpe.positions.networks import BatchNorm, count_perceptron
from structpe.positions.spectra import ADJACENCY, UNIT_COUNT, Nodes
from structpe.precision import exactly, wide, widened
from structpe.terms import Terms

__all__ = ["LSPE"]


_PARAMS = f"{count_perceptron('k', 'd')} + r*d + (9*d*d + 9*d)*l + 2*d*(l - 1) + {count_perceptron('d', 'k', 'd')}"
"""Formula of the number of parameters."""


@dataclass(frozen=True)
class _State:
    """p (b, n, d); e (E, d) of the linked pairs, which are ``ends`` (3, E): structure, to, from; and the nodes."""

    p: Tensor
    e: Tensor
    ends: Tensor
    nodes: Nodes


class LSPE(Block, name="lspe"):
    """A separate stream of position vectors, updated in every layer (Dwivedi et al. 2022).

    GatedGCN-LSPE instead of attention: a layer changes hidden vectors x, positions p and links e.

    ::

        g_ij = B_1 x_j + B_2 x_i + B_3 e_ij,    eta_ij = sigmoid(g_ij) / (sum_j' sigmoid(g_ij') + 1e-6)
        x_i  <- x_i + relu(norm((A_1 [x_i; p_i] + sum_j eta_ij A_2 [x_j; p_j]) / sqrt(n)))
        p_i  <- p_i + tanh(C_1 p_i + sum_j eta_ij C_2 p_j)
        e_ij <- e_ij + relu(norm(g_ij))

    where j runs over the units linked to i, and everything on the right is of the layer before. At first p = W s + w
    with the k probabilities of return s of random walks, and e_ij embeds the kind of link. After the last layer x_i <-
    x_i + W_x p', p' being F p + f (k), each of its columns brought to mean 0 and length 1 over the nodes of the graph.
    Maps are (d, d), or (d, 2d), with bias; norm is batch normalisation over real units and links; n the number of
    units. (Dwivedi et al. 2022, section 3.2, eqs. 9 to 14; the authors' code.)

    The layer normalises x on the right before this, and also adds the residual x_i. The last layer does not update e.
    The code ends with [x_i; p'] times one matrix, of which the part for x is 1 here; it embeds labels of bonds where
    this has kinds of links: an edge to, from, to and from the other, or two units of one node. Its loss that pulls p'
    towards eigenvectors is not included.

    Args:
        encoding: s, a vector of k numbers per unit.

    Raises:
        PositionError: the encoding gives a single number per unit.
        UnsupportedTerm: something other than which pairs attend is to act on attention, or differs by head.
    """

    # It is not unbound, as in the middle of a long path all walks of k steps return alike.
    heads = False
    spec = Spec(
        "dwivedi2022",
        "graph",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params=_PARAMS),
        note="a block counts its projections",
    )

    def __init__(self, dims: Dims, encoding: Encoding = RandomWalk(undirected=True)) -> None:
        k, d = width_of(self.name, encoding), dims.width
        super().__init__(dims, [encoding, ADJACENCY, UNIT_COUNT], k=k, r=LINKS - 2)
        self.enter = nn.Linear(k, d)
        self.edges = nn.Embedding(LINKS - 2, d)  # neither for pairs without a link, nor for a unit and itself
        self.layers = nn.ModuleList(_Layer(d, last=i == dims.layers - 1) for i in range(dims.layers))
        self.final, self.leave = nn.Linear(d, k), nn.Linear(k, d)

    def prepare(self, positions: Positions) -> _State:
        """Positions and links before the first layer."""
        enter = widened(self.enter)
        dtype = enter.weight.dtype
        nodes = Nodes.of(positions, dtype)
        kinds = links(positions[ADJACENCY])
        together = nodes.weights > 0
        ends = ((kinds != NONE) & (kinds != SELF) & together & nodes.present[..., None]).nonzero().T
        kind = kinds[ends[0], ends[1], ends[2]]
        p = enter(positions[self.encodings[0]].to(dtype))
        return _State(p, self.edges(kind - 1 - (kind > SELF).long()), ends, nodes)

    def attend(self, x: Tensor, prepared: _State, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        row, target, source = prepared.ends
        kept = without_heads(self.name, allowed(self.name, terms, x)).expand(len(x), -1, -1)[row, target, source]
        state = replace(prepared, e=prepared.e[kept], ends=prepared.ends[:, kept])
        out, state = self.layers[site.layer](x, state)
        if site.layer == self.dims.layers - 1:
            out = out + self.leave(_normalised(_mapped(self.final, state.p), state.nodes).to(x.dtype))
        return out, state


class _Layer(nn.Module):
    def __init__(self, width: int, last: bool) -> None:
        super().__init__()
        self.a1, self.a2 = (nn.Linear(2 * width, width) for _ in range(2))
        self.b1, self.b2, self.b3, self.c1, self.c2 = (nn.Linear(width, width) for _ in range(5))
        self.norm = BatchNorm(width)
        self.norm_links = None if last else BatchNorm(width)

    def forward(self, x: Tensor, state: _State) -> tuple[Tensor, _State]:
        """What is added to x (b, n, d), and the new state."""
        p, e, (row, target, source) = state.p, state.e, state.ends
        both = torch.cat([x, p.to(x.dtype)], dim=-1)
        gates = self.b1(x)[row, source] + self.b2(x)[row, target] + self.b3(e)
        strength = wide(gates).sigmoid()
        none = strength.new_zeros(x.shape)
        eta = strength / (none.index_put((row, target), strength, accumulate=True)[row, target] + 1e-6)

        def gathered(of_units: Tensor) -> Tensor:
            return none.index_put((row, target), eta * of_units[row, source], accumulate=True)

        size = (state.nodes.weights > 0).sum(-1, keepdim=True).clamp(min=1).to(none.dtype)
        sums = (self.a1(both) + gathered(self.a2(both))) / size.sqrt()
        added = torch.relu(self.norm(sums.to(x.dtype), state.nodes.present))
        # Positions are of float32: what nearly all units have is subtracted in the end.
        p = p + torch.tanh(_mapped(self.c1, p) + gathered(_mapped(self.c2, p)))
        if self.norm_links is not None:
            there = torch.ones(len(e), dtype=torch.bool, device=e.device)
            e = e + torch.relu(self.norm_links(gates, there))
        return added, replace(state, p=p, e=e)


@exactly
def _mapped(layer: nn.Linear, p: Tensor) -> Tensor:
    mapped: Tensor = widened(layer)(p)
    return mapped


@exactly
def _normalised(p: Tensor, nodes: Nodes) -> Tensor:
    """Each column to mean 0 and length 1 over the nodes of the graph; 0 where it is the same for all."""
    p = p - nodes.means(p)
    return p / nodes.sums(p * p).clamp(min=1e-12).sqrt()
