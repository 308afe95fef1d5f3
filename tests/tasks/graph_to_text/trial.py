"""Batches that are collated before a training begins, to see whether the model can take them."""

from __future__ import annotations

import inspect

__all__ = ["is_trial"]


def is_trial() -> bool:
    """Whether the largest graph and the longest text are just being tried: that is no step of the training."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "_try" and frame.f_code.co_filename.endswith("runs/text.py"):
            return True
        frame = frame.f_back
    return False
