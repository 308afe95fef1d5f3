"""The weights of a model as one file that knows whether it is still what was written.

The file is safetensors; its metadata hold a digest of all tensors: names, types, shapes and bytes. As it is in the file
itself, weights and digest are replaced at one stroke.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from structpe.errors import StoreError, undamaged
from structpe.files import atomic_write

__all__ = ["WEIGHTS", "full", "gathered", "load_weights", "save_weights"]

WEIGHTS = "model.safetensors"
"""The file of the best model's weights, in the folder of a run."""
KEY = "sha256"
"""Under which the metadata hold ``VERSION:DIGEST``; one key, as safetensors writes several in no order."""
VERSION = "4"
"""Raised when weights of before no longer fit the models, as layers have other names or compute something else."""
DAMAGED = "the weights are not those that were written: a part of the file has changed"


def save_weights(model: nn.Module, path: Path, writes: bool = True) -> None:
    """Write the parameters and buffers of a model.

    Args:
        model: where its parameters are shared out to several devices, all of them must call this.
        path: the file.
        writes: whether this process is the one that writes.
    """
    from safetensors.torch import save_file

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in gathered(model).items()}
    if not writes:
        return
    atomic_write(path, lambda hidden: save_file(tensors, hidden, metadata={KEY: f"{VERSION}:{digest(tensors)}"}))


def gathered(module: nn.Module) -> dict[str, Tensor]:
    """The state of a module, whole; where it is shared out to several devices, all of them must call this."""
    return {name: full(value) for name, value in module.state_dict().items()}


def full(value: Any) -> Any:
    """A tensor of which devices have parts, whole; all of them must call this. Anything else as it is."""
    from torch.distributed.tensor import DTensor  # takes half a second to import

    return value.full_tensor() if isinstance(value, DTensor) else value


def load_weights(path: Path, remedy: str) -> dict[str, Tensor]:
    """What :func:`save_weights` wrote.

    Args:
        path: the file.
        remedy: what to do where it is damaged.

    Raises:
        StoreError: the file is missing, damaged, or of another version.
    """
    from safetensors import safe_open

    if not path.is_file():
        raise StoreError(f"there is no such file; {remedy}").at(path)
    with undamaged(path, remedy), safe_open(path, "pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    version, found = (metadata or {}).get(KEY, "").rpartition(":")[::2]
    if version != VERSION:
        raise StoreError(
            f"the weights have version {version or '1'}, this structpe reads version {VERSION}, as layers of its "
            f"models have other names or compute something else; use the structpe that wrote them; {remedy}"
        ).at(path)
    if found != digest(tensors):
        raise StoreError(f"{DAMAGED}; {remedy}").at(path)
    return tensors


def digest(tensors: Mapping[str, Tensor]) -> str:
    """Of names, types, shapes and bytes of tensors, in the order of their names."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
