"""Arrays of structures to tensors of PyTorch and back, as copies with the same dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ConversionError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["is_array", "to_array", "to_tensor"]


def is_array(value: object) -> bool:
    """Whether it is a tensor or an array with at least one axis."""
    from torch import Tensor

    return isinstance(value, (Tensor, np.ndarray)) and value.ndim > 0


def to_array(value: Any, what: str) -> NDArray[Any]:
    """A copy as an array, from any device; bfloat16 becomes float32, since NumPy does not have it.

    Raises:
        ConversionError: the tensor is sparse or quantized.
    """
    import torch

    if isinstance(value, np.ndarray):
        return value.copy()
    if value.layout is not torch.strided or value.is_quantized:
        kind = "quantized" if value.is_quantized else str(value.layout).removeprefix("torch.")
        raise ConversionError(f"{what} is a {kind} tensor; convert it first, for example with to_dense()")
    tensor = value.detach().cpu()
    found: NDArray[Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor.resolve_conj()).numpy()
    return found.copy()


def to_tensor(value: Any, what: str) -> Tensor:
    """A copy as a tensor.

    Raises:
        ConversionError: PyTorch does not have this dtype.
    """
    import torch

    array = np.array(value)
    try:
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("=")))
    except TypeError:
        raise ConversionError(
            f"{what} has dtype {array.dtype}, which PyTorch does not have; convert it first"
        ) from None
