"""Rotary positions of graphs: learned angles from the spectrum of the Laplacian (Reid et al. 2025)."""

from __future__ import annotations

import torch

from structpe.encodings.base import Encoding
from structpe.encodings.laplacian import Laplacian
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Spec
from structpe.positions._checks import of_arity
from structpe.positions.rotary._learned_turns import LearnedTurns
from structpe.positions.rotary._turns import check_even
from structpe.structure import path

__all__ = ["WIRE"]


class WIRE(LearnedTurns, name="wire"):
    """Rotary positions of graphs: learned angles from the spectrum of the Laplacian (Reid et al. 2025).

    The channels (2i, 2i+1) of each head are turned by w_i . x_u; x_u are the unit's entries of k eigenvectors.

    w (d_h/2, k) is learned, per layer and head. Scores then depend on differences x_u - x_v only, and attention stays
    compatible with linear kernels. On a grid, some w repeat rotary positions of its axes. (Reid et al. 2025, section
    3; as there, x are the k lowest eigenvectors of the graph's Laplacian, or any other numbers of a node.)

    w starts from N(0, ``std``^2). Eigenvectors have no sign of their own: ``laplacian`` chooses one by a rule, which
    another numbering of symmetric nodes may change.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: x, a vector per unit.
        std: deviation that w starts from.

    Raises:
        PositionError: the width of a head is odd, or the encoding gives no vector per unit.
    """

    spec = Spec(
        "reid2025",
        "graph",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=True, params="d*k*l/2"),
        note="scores depend on differences of entries, but text in front of a text changes the eigenvectors",
    )

    interleaved = True

    def __init__(self, dims: Dims, encoding: Encoding = Laplacian(), std: float = 1.0) -> None:
        check_even(self.name, dims)
        shape = of_arity(self.name, encoding, 1).one(path(["a", "b"])).values.shape
        if len(shape) != 2:
            raise PositionError(
                f"position model {self.name!r} needs a vector per unit (laplacian, random-walk, ...); "
                f"{encoding.name!r} gives one number"
            )
        k = shape[1]
        super().__init__(dims, encoding, k, torch.randn(dims.layers, dims.heads, dims.head // 2, k) * std)
        self.sizes = {"k": k}
