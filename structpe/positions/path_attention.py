"""Vectors for paths of edge labels, and how they enter attention: what the models of Zhu et al. 2019 share.

Shapes: R distinct paths of a batch, c their labels at most ("slots"), w = d_h the width of a path vector.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.label_path import LabelPath
from structpe.encodings.label_path_search import FIRST_STEP, UNKNOWN
from structpe.errors import PositionError
from structpe.positions import Dims
from structpe.terms import Lookup, Terms

__all__ = ["Edges", "PathAttention", "Slots", "each_pair", "glorot", "of_pairs", "slots_of", "waves"]


class PathAttention(nn.Module):
    """s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    n is a LayerNorm. W_k, W_v (w, w), b_k, b_v (w,) and n are of each layer, and shared by its heads.
    """

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.norm = nn.ModuleList(nn.LayerNorm(dims.head, eps=1e-6) for _ in range(dims.layers))
        self.key = nn.ModuleList(nn.Linear(dims.head, dims.head) for _ in range(dims.layers))
        self.value = nn.ModuleList(nn.Linear(dims.head, dims.head) for _ in range(dims.layers))

    def forward(self, r: Lookup, layer: int) -> Terms:
        """The terms of a layer from the path vectors (R, w)."""
        normed = r.map(self.norm[layer])
        return Terms(
            key=(normed.map(lambda n: self.key[layer](n)[:, None]),),
            value=(normed.map(lambda n: self.value[layer](n)[:, None]),),
        )


class Slots(nn.Module):
    """sqrt(w) E[label] for each slot of a path; slots after its end have the label "blank", which is not learned.

    Args:
        labels: number of labels; E has a row more, its first, for "blank".
        slots: c.
        width: w.
    """

    def __init__(self, labels: int, slots: int, width: int) -> None:
        super().__init__()
        self.slots = slots
        self.table = nn.Embedding(labels + 1, width, padding_idx=0)

    def forward(self, paths: Tensor) -> Tensor:
        """(R, c, w) from paths (R, c or less) of labels, -1 where a path has ended."""
        blank = paths.new_full((len(paths), self.slots - paths.shape[1]), -1)
        embedded: Tensor = self.table(torch.cat([paths, blank], dim=1) + 1)
        return embedded * math.sqrt(self.table.embedding_dim)


def slots_of(model: str, encoding: LabelPath) -> int:
    """c: the number of slots that the encoding fills.

    Raises:
        PositionError: it has no limit, or several paths per pair.
    """
    if encoding.limit is None or encoding.paths != 1:
        raise PositionError(
            f"position model {model!r} needs paths of a limited length, one per pair: "
            f"LabelPath(limit=4), for example; given is {encoding!r}"
        )
    return encoding.limit


def waves(places: int, width: int) -> Tensor:
    """(places, width) interleaved sines and cosines in float32, number by number those of the authors' buffer.

    Computed in float64 they differ by 1e-8, and the model would then differ from the authors' outputs.
    """
    frequencies = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * -(math.log(10000.0) / width))
    angles = torch.arange(places, dtype=torch.float32)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:, :width]


def glorot(module: nn.Module) -> None:
    """Weights uniform with the variance of Glorot and Bengio 2010, as the authors start theirs; biases stay."""
    for parameter in module.parameters():
        if parameter.ndim > 1:
            nn.init.xavier_uniform_(parameter)


def each_pair(table: Tensor, which: Tensor) -> Lookup:
    """The lookup x_ij = table[which_ij] for ``which`` (b, n, m), each pair with a row of its own.

    For values of which a structure has nearly as many as pairs: equal ones are not searched for.
    """
    pairs = torch.arange(which[0].numel(), device=which.device)
    return Lookup(table, which.flatten(1), pairs.view(1, *which.shape[1:]))


def of_pairs(table: Tensor, which: Tensor) -> Lookup:
    """The lookup x_ij = table[which_ij] for ``which`` (b, n, m): finds the rows that each structure uses."""
    first = torch.arange(len(which), device=which.device) * len(table)
    used, index = torch.unique(which + first[:, None, None], return_inverse=True)
    start = torch.searchsorted(used, first)
    structure = used // len(table)
    place = torch.arange(len(used), device=used.device) - start[structure]
    rows = used.new_zeros(len(which), int(place.max()) + 1)
    rows[structure, place] = used % len(table)
    return Lookup(table, rows, index - start[:, None, None])


class Edges(nn.Module):
    """E[label] of the steps of a path; zero without a step. The first row is for labels not seen in training.

    Args:
        symbols: number of symbols of the paths.
        heads: h, width of E.
    """

    def __init__(self, symbols: int, heads: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(symbols - FIRST_STEP + 1, heads) * 0.02)

    def forward(self, paths: Tensor) -> tuple[Tensor, Tensor]:
        """(R, L, h) vectors, and (R, L) which are steps, from the symbols (R, L) of paths."""
        rows, steps = self.rows(paths)
        return self.table[rows] * steps[..., None], steps

    @staticmethod
    def rows(paths: Tensor) -> tuple[Tensor, Tensor]:
        """(R, L) row of E of each symbol, 0 where it is no step, and (R, L) which are steps."""
        return (paths - (FIRST_STEP - 1)).clamp(min=0), (paths == UNKNOWN) | (paths >= FIRST_STEP)
