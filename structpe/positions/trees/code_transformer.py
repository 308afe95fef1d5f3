"""Several distances in a tree at once, each as in Transformer-XL (Zuegner et al. 2021, Code Transformer)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from structpe.encodings.ancestor_distance import AncestorDistance
from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.binned import Binned
from structpe.encodings.distance import UndirectedDistance
from structpe.encodings.order import Offset
from structpe.encodings.personalized_pagerank import PersonalizedPageRank
from structpe.encodings.sibling_distance import SiblingDistance
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_arity, offsets
from structpe.positions.relative._offset_sinusoids import everywhere
from structpe.positions.relative._spans import steps
from structpe.positions.sinusoidal._sinusoids import inverse_frequencies
from structpe.terms import Lookup, Terms

__all__ = ["CodeTransformer"]

_FAR = 10000
"""Replaces UNREACHABLE in the sinusoid, as in the authors' code."""


class CodeTransformer(PositionModel, name="code-transformer"):
    """Several distances in a tree at once, each as in Transformer-XL (Zuegner et al. 2021, Code Transformer).

    s_ij = ((q_i + u).k_j + sum_r (q_i + p_r).(W_r R[b_r(i, j)] + c_r)) / sqrt(d_h), r over n distances.

    R[b] (d) = cat[sin(b w_c), cos(b w_c)], w_c = 10000^(-2c/d), c < d/2, the angles b w_c rounded to float32 as theirs,
    which is visible at 10,000; b_r(i, j) is the bin that the distance r of i and j is in, and 10,000 without a path. Of
    each layer are W_r (d, d), c_r (d), u and p_r (h, d_h). (Zuegner et al. 2021, section 3.1, eq. 5 to 8, and their
    code, which this follows where the paper leaves it open: bins of each tree, see :class:`structpe.encodings.Binned`;
    u and p of each layer.) c_r is the same for all keys, so that the softmax cancels it. The distances are those of
    their experiments: personalised PageRank, ancestors, siblings, shortest paths and, the context of the title, the
    sequence. Units of one node, k places apart, have the R of k.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per pair, of each distance.

    Raises:
        PositionError: no distance, or an encoding without one number per pair.
    """

    spec = Spec(
        "zuegner2021",
        "tree",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="l*(n*(d*d + 2*d) + d)"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: tuple[Encoding, ...] = (
            Binned(PersonalizedPageRank()),
            Binned(AncestorDistance()),
            Binned(SiblingDistance()),
            Binned(UndirectedDistance()),
            Binned(Offset()),
        ),
    ) -> None:
        if not encoding:
            raise PositionError(f"position model {self.name!r} needs one distance or more; none is given")
        n, shape = len(encoding), (dims.layers, dims.heads, dims.head)
        super().__init__(dims, [of_arity(self.name, each, 2) for each in encoding], n=n)
        self.project = nn.ModuleList(nn.Linear(dims.width, dims.width) for _ in range(dims.layers * n))
        for name, parameter in self.project.named_parameters():
            nn.init.xavier_uniform_(parameter) if name.endswith("weight") else nn.init.zeros_(parameter)
        self.content = nn.Parameter(torch.randn(shape) * math.sqrt(2 / (dims.heads + dims.head)))
        self.position = nn.Parameter(torch.randn(dims.layers, n, *shape[1:]) * math.sqrt(2 / (n + dims.width)))

    def prepare(self, positions: Positions) -> list[Lookup]:
        """R (r, d) of each distinct bin of each distance, once for all layers."""
        each = [offsets(self.name, encoding, positions[encoding]) for encoding in self.encodings]
        return [of_pairs.map(self._waves) for of_pairs in each]

    def terms(self, prepared: list[Lookup], site: Site) -> Terms:
        keys = [waves.map(self._projection(site.layer, r)) for r, waves in enumerate(prepared)]
        position = self.position[site.layer] / math.sqrt(self.dims.head)
        biases = [Lookup((k.table * p).sum(-1), k.rows, k.index) for k, p in zip(keys, position, strict=True)]
        return Terms(
            key=tuple(keys), query=(everywhere(self.content[site.layer][None], prepared[0]),), bias=tuple(biases)
        )

    def _projection(self, layer: int, distance: int) -> Callable[[Tensor], Tensor]:
        linear = self.project[layer * len(self.encodings) + distance]
        return lambda waves: linear(waves).reshape(len(waves), self.dims.heads, self.dims.head)

    def _waves(self, values: Tensor) -> Tensor:
        values = values.double()  # half precision has no 10,000, and is infinite where it should be unreachable
        bins = torch.where(values < UNREACHABLE // 2, values, torch.where(values > WITHIN // 2, steps(values), _FAR))
        rounded = inverse_frequencies(self.dims.width, bins.device).float()
        angles = (bins.float()[..., None] * rounded).double()
        return torch.cat([angles.sin(), angles.cos()], dim=-1)[..., : self.dims.width].to(self.content.dtype)
