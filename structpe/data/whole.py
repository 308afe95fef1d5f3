"""Batches that other libraries treat as one object, and whose tensors keep their dtypes."""

from __future__ import annotations

__all__ = ["as_one"]


def as_one(cls: type) -> None:
    """Hide the fields of a frozen dataclass from other libraries, as the last step of its definition.

    At ``bf16-true``, ``16-true`` and ``64-true`` Lightning converts all floating point tensors in the fields of a
    dataclass to the dtype of the model, and refuses frozen ones. But places, targets and features of a batch must keep
    their dtypes: models convert their inputs themselves, and a rounded place is another place.
    """
    del cls.__dataclass_fields__  # type: ignore[attr-defined]  # by which libraries recognise a dataclass
