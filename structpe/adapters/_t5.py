"""Take the table of relative biases of a T5 checkpoint."""

from __future__ import annotations

from typing import Any, Literal

import torch

from structpe.errors import PositionError
from structpe.positions import PositionModel
from structpe.positions.buckets import Buckets
from structpe.positions.tables import Table

__all__ = ["take_t5"]


def take_t5(position: PositionModel, model: Any, stack: Literal["encoder", "decoder"] = "encoder") -> PositionModel:
    """Copy the bias of a T5 checkpoint into a position model with the same buckets, and return the position model.

    These are ``t5``, ``t5-unshared``, ``t5-causal`` (for the decoder), ``glm-local`` and ``glm-global``; with the last
    two a T5 becomes a graph language model (Plenz and Frank 2024). Rows that T5 lacks, for units without a path, become
    a copy of the bucket for the farthest keys ahead, which T5 has for +infinity. Inject it with ``start="own"`` and
    ``instead=True``.

    Args:
        position: built for :func:`structpe.adapters.transformers.dims`.
        model: a T5 or mT5 of Hugging Face.
        stack: whose table; that of the decoder is for one direction.

    Raises:
        PositionError: the model has no such table, or the position model other buckets or heads.
    """
    rows, table = getattr(position, "rows", None), getattr(position, "table", None)
    buckets = getattr(rows, "rule", None)
    if not isinstance(buckets, Buckets) or not isinstance(table, Table) or table.weight.ndim != 3:
        raise PositionError(
            f"position model {position.name!r} has no table of T5's buckets; those with one are t5, t5-unshared, "
            f"t5-causal, glm-local and glm-global"
        )
    try:
        own = model.base_model.get_submodule(f"{stack}.block.0.layer.0.SelfAttention").relative_attention_bias.weight
    except AttributeError:
        raise PositionError(f"{type(model).__name__} has no table of relative biases in its {stack}") from None
    theirs = (model.config.relative_attention_num_buckets, model.config.relative_attention_max_distance)
    if (buckets.count, buckets.max_distance, buckets.bidirectional) != (*theirs, stack == "encoder"):
        raise PositionError(
            f"T5's {stack} has {theirs[0]} buckets and max_distance {theirs[1]}, "
            f"{'two' if stack == 'encoder' else 'one'}-way; position model {position.name!r} has {buckets.count} and "
            f"{buckets.max_distance}; build it with these"
        )
    if table.weight.shape[-1] != own.shape[1]:
        raise PositionError(f"T5 has {own.shape[1]} heads, the table of the position model {table.weight.shape[-1]}")
    if own.is_meta:  # a model without numbers, of which only the form is looked at
        return position
    with torch.no_grad():
        table.weight[:, : buckets.count] = own.to(table.weight)
        table.weight[:, buckets.count :] = table.weight[:, buckets.count - 1 : buckets.count]
    return position
