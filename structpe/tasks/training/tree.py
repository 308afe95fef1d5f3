"""A nested state taken apart into tensors and JSON, and put together again: a checkpoint without pickle.

JSON knows fewer types than Python. What it lacks is an object with one key that begins with ``$``::

    {"$tensor": name}     {"$array": name}        {"$tuple": [...]}
    {"$bytes": base64}    {"$float": "inf"}       {"$dict": [[key, value], ...]}

The last is for a dict whose keys are not all strings, or are mistakable for these.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structpe.errors import StoreError

__all__ = ["flatten", "restore"]


def flatten(state: Any) -> tuple[dict[str, Tensor], Any]:
    """The tensors of a state by the path to them, and the rest as what JSON can hold.

    Raises:
        StoreError: something in the state is of a type that cannot be written without pickle.
    """
    tensors: dict[str, Tensor] = {}
    return tensors, _plain(state, "", tensors)


def restore(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The state again; the inverse of :func:`flatten`."""
    if isinstance(plain, list):
        return [restore(each, tensors) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1 and (kind := next(iter(plain))) in _KINDS:
        return _special(kind, plain[kind], tensors)
    return {key: restore(value, tensors) for key, value in plain.items()}


_KINDS = ("$tensor", "$array", "$tuple", "$bytes", "$float", "$dict")


def _plain(value: Any, where: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return {"$tensor": _put(value.detach().cpu(), where, tensors)}
    if isinstance(value, np.ndarray):
        return {"$array": _put(torch.from_numpy(np.ascontiguousarray(value)).view(value.shape), where, tensors)}
    if isinstance(value, np.generic):
        return _plain(value.item(), where, tensors)
    if isinstance(value, Mapping):
        return _mapping(value, where, tensors)
    if isinstance(value, (list, tuple)):
        items = [_plain(each, f"{where}.{i}", tensors) for i, each in enumerate(value)]
        return {"$tuple": items} if isinstance(value, tuple) else items
    return _scalar(value, where)


def _mapping(value: Mapping[Any, Any], where: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    pairs = [(key, _plain(each, f"{where}.{key}", tensors)) for key, each in value.items()]
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return dict(pairs)
    return {"$dict": [[_plain(key, where, tensors), each] for key, each in pairs]}


def _scalar(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    raise StoreError(
        f"a checkpoint cannot hold {where.lstrip('.')!r}, which is of type {type(value).__name__}; "
        f"it holds tensors, arrays, numbers, strings, bytes, and lists, tuples and dicts of these"
    )


def _put(tensor: Tensor, where: str, tensors: dict[str, Tensor]) -> str:
    name = where.lstrip(".") or "state"
    while name in tensors:  # {"a.b": x, "a": {"b": y}} gives one path twice
        name += "'"
    # Two tensors over one memory cannot be stored as such; a copy of each can.
    tensors[name] = tensor.clone(memory_format=torch.contiguous_format)
    return name


def _special(kind: str, content: Any, tensors: Mapping[str, Tensor]) -> Any:
    if kind == "$tensor":
        return tensors[content]
    if kind == "$array":
        return tensors[content].numpy()
    if kind == "$tuple":
        return tuple(restore(each, tensors) for each in content)
    if kind == "$bytes":
        return base64.b64decode(content)
    if kind == "$float":
        return float(content)
    return {restore(key, tensors): restore(value, tensors) for key, value in content}
