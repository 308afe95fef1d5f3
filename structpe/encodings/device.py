"""Dense computations for many graphs at once on a device of PyTorch, such as a GPU.

Inside :func:`structpe.encodings.graphs.computing_on`, return probabilities of walks and eigenvectors of graphs are
computed there. Everything else, and these outside of it, are computed by NumPy and numba. Shortest paths and walks
between pairs were computed on a device too, until an H100 took longer for them than one core of a CPU: it has to send n
x n numbers back. Shapes: b graphs of n nodes each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.graphs import chosen_device

if TYPE_CHECKING:
    import torch

__all__ = ["CELLS", "LARGEST", "lowest", "returns"]


CELLS = 1 << 25
"""Pairs of nodes of a group of graphs: some hundred MiB."""
LARGEST = 4096
"""Nodes of a graph that is walked by dense products; larger ones stay on the CPU."""


def returns(walk: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """(b, n, steps) diagonals of P, P^2, ... of P (b, n, n), from half of the powers."""
    import torch

    step = torch.from_numpy(walk).to(_device())
    half, power = -(-steps // 2), [step]
    while len(power) < half:
        power.append(step @ power[-1])
    turned = power[-1].mT
    near = [each.diagonal(dim1=1, dim2=2) for each in power]
    far = [(turned * each).sum(1) for each in power[: steps - half]]
    return _array(torch.stack([*near, *far], dim=-1))


def lowest(matrices: NDArray[Any], count: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """(b, count) lowest eigenvalues, ascending, and (b, n, count) eigenvectors of Hermitian (b, n, n) matrices."""
    import torch

    values, vectors = torch.linalg.eigh(torch.from_numpy(matrices).to(_device()))
    return _array(values[:, :count]), _array(vectors[..., :count])


def _device() -> torch.device:
    device = chosen_device()
    assert device is not None
    return device


def _array(x: torch.Tensor) -> NDArray[Any]:
    array: NDArray[Any] = x.contiguous().cpu().numpy()
    return array
