"""Dense computations for many graphs at once on a device of PyTorch, such as a GPU.

Inside :func:`computing_on`, return probabilities of walks and eigenvectors of graphs are computed there. Everything
else, and these outside of it, are computed by NumPy and numba. Shortest paths and walks between pairs were computed on
a device too, until an H100 took longer for them than one core of a CPU: it has to send n x n numbers back. Shapes: b
graphs of n nodes each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import EncodingError

if TYPE_CHECKING:
    import torch

__all__ = ["CELLS", "LARGEST", "chosen", "computing_on", "lowest", "returns"]


CELLS = 1 << 25
"""Pairs of nodes of a group of graphs: some hundred MiB."""
LARGEST = 4096
"""Nodes of a graph that is walked by dense products; larger ones stay on the CPU."""

_chosen: ContextVar[torch.device | None] = ContextVar("_chosen", default=None)


@contextmanager
def computing_on(device: torch.device | str | None) -> Iterator[None]:
    """Inside a ``with`` block, encodings are computed on this device, as far as they can; None: by NumPy and numba.

    Raises:
        EncodingError: PyTorch cannot compute there in float64.
    """
    token = _chosen.set(None if device is None else _usable(device))
    try:
        yield
    finally:
        _chosen.reset(token)


def _usable(device: torch.device | str) -> torch.device:
    import torch

    try:
        return torch.empty(1, dtype=torch.float64, device=device).device
    except (RuntimeError, AssertionError, TypeError) as error:  # also where PyTorch was built without CUDA
        reason = str(error).partition("\n")[0].rstrip(".")
        raise EncodingError(
            f"encodings cannot be computed on {str(device)!r} ({reason}); give a device that PyTorch has here and that "
            f"computes in float64, such as 'cuda' or 'cpu', or None"
        ) from None


def chosen() -> torch.device | None:
    """The device, if one was chosen."""
    return _chosen.get()


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
    device = chosen()
    assert device is not None
    return device


def _array(x: torch.Tensor) -> NDArray[Any]:
    array: NDArray[Any] = x.contiguous().cpu().numpy()
    return array
