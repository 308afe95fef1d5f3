"""A readout takes from the vectors of nodes what a prediction is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from structpe.data.batch import Batch
from structpe.errors import ConfigError
from structpe.registry import Registry

__all__ = ["READOUTS", "Readout", "readout_of"]

READOUTS: Registry[type[Readout]] = Registry("structpe.nn.readouts", "readout", ConfigError)
"""All readouts, by name."""


class Readout(nn.Module, ABC):
    """Base class. Most readouts give a vector of each item, of which the head of the model makes the prediction.

    Args:
        width: d, of the vectors of nodes.
        outputs: how many numbers are predicted; of pairs, how many relations there are.

    Attributes:
        level: what its predictions are for: ``graph``, ``node`` or ``pair``.
        default: whether it is the readout of its level if the configuration names none.
        head: whether the head makes the prediction; otherwise the readout gives the prediction itself.
    """

    name: ClassVar[str]
    level: ClassVar[str]
    default: ClassVar[bool] = False
    head: ClassVar[bool] = True

    def __init_subclass__(cls, name: str = "", level: str = "", default: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        if level:
            cls.level = level
        if name:
            cls.name, cls.default = name, default
            READOUTS.add(name, cls)

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        del width, outputs

    @abstractmethod
    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Tensor:
        """(c, d) vectors of the items of a batch, or their predictions.

        Args:
            x: vectors of nodes.
            batch: the batch.
        """


def readout_of(name: str | None, level: str | None) -> type[Readout]:
    """The readout of this name, or the default of a level.

    Args:
        name: of the readout; None for the default.
        level: what is predicted; None takes the readout's own, and graphs where no readout is named either.

    Raises:
        ConfigError: there is no such readout or level, or the readout is of another level.
    """
    if name is not None:
        readout = READOUTS[name]
        if level in (None, readout.level):
            return readout
        known = ", ".join(each for each in READOUTS if READOUTS[each].level == level)
        raise ConfigError(
            f"readout is {name!r}, which is of the level {readout.level!r}; what is predicted here has the level "
            f"{level!r}: choose one of {known}, or leave it out"
        )
    for readout in READOUTS.values():
        if readout.default and readout.level == (level or "graph"):
            return readout
    raise ConfigError(f"no readout is the default of the level {level!r}; give it one, or choose a readout by name")
