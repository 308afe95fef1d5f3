"""The mean of the weights at the last validations."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

__all__ = ["Average"]


class Average:
    """The mean of the weights of a model at several moments, which varies less than the weights of the last.

    Vaswani et al. 2017, section 6.1, average the last five checkpoints so.

    Parameters and buffers of floating point numbers are averaged, running statistics of batch normalisation among them;
    of other buffers the last counts. Sums are in float64, so that the mean of equal numbers is that number.

    Args:
        count: of moments, the last of which are kept; with 1 the mean is the model itself, and nothing is kept.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.kept: deque[Mapping[str, Tensor]] = deque(maxlen=count)

    def add(self, model: nn.Module) -> None:
        """Keep the weights of this moment."""
        if self.count > 1:
            self.kept.append({name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()})

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """The model has the mean of the weights that are kept; afterwards its own again, to the bit."""
        if len(self.kept) < 2:
            yield
            return
        own = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        model.load_state_dict(mean(list(self.kept)))
        try:
            yield
        finally:
            model.load_state_dict(own)


def mean(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Of the floating point numbers of each name; what is no such number is that of the last."""
    return {
        name: torch.stack([state[name].double() for state in states]).mean(0).to(last.dtype)
        if last.is_floating_point()
        else last
        for name, last in states[-1].items()
    }
