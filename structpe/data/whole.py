"""Batches as one thing, whose tensors keep their dtypes."""

from __future__ import annotations

__all__ = ["as_one"]


def as_one(cls: type) -> None:
    """Let other libraries take objects of a frozen dataclass as one thing, as the last step of its definition.

    At ``bf16-true``, ``16-true`` and ``64-true`` Lightning gives all floating point tensors that it finds in the fields
    of a dataclass the dtype of the model, and refuses frozen ones. But places, targets and features of a batch keep
    their dtypes: models convert what they compute with, and a place that is rounded is another place.
    """
    del cls.__dataclass_fields__  # type: ignore[attr-defined]  # what makes a class a dataclass for others
