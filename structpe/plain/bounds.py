"""The largest sizes in configurations: generous for any work, and small enough to catch a slip at once.

Other sizes need no bound here, since they are compared with the data, such as the number of examples.
"""

from __future__ import annotations

from typing import Any

from structpe.errors import ConfigError

__all__ = [
    "BATCH",
    "BEAM",
    "HEADS",
    "LAYERS",
    "OPTION",
    "PARAMETERS",
    "PROCESSES",
    "RUNS",
    "STEPS",
    "UNITS",
    "VOCABULARY",
    "WIDTH",
    "bounded",
    "few_parameters",
]

STEPS = 10**9
"""Steps of training, and numbers of steps."""
BATCH = 10**6
"""Examples of a batch, batches of a step."""
WIDTH = 1 << 16
"""Of hidden vectors; feed-forward parts may be four times as wide."""
HEADS = 1 << 12
LAYERS = 1 << 12
PARAMETERS = 10**11
"""Of all layers together, 400 GB in single precision."""
VOCABULARY = 1 << 20
"""Subword units."""
UNITS = 1 << 24
"""Of a structure, or a text."""
BEAM = 1 << 12
"""Texts that a search keeps."""
PROCESSES = 1 << 10
"""Processes, devices and threads."""
RUNS = 100_000
"""Of one study."""
OPTION = 1 << 24
"""Any integer option of an encoding or a position model, except seeds."""


def bounded(config: Any, where: str = "", **most: int) -> None:
    """Check the largest values of a configuration.

    Args:
        config: the configuration.
        where: prefix of the names in errors.
        most: the largest value of each attribute.

    Raises:
        ConfigError: one is larger.
    """
    for name, largest in most.items():
        if (value := getattr(config, name)) > largest:
            given = f"{value}" if value < 10**20 else "a number of more than 20 digits"
            raise ConfigError(f"{where}{name} is {given}; at most {largest} is allowed, give a smaller number")


def few_parameters(width: int, feedforward: int, layers: int) -> None:
    """Check that layers of these sizes fit into some machine.

    Raises:
        ConfigError: they have more parameters than :data:`PARAMETERS`.
    """
    count = layers * width * (4 * width + 2 * feedforward)
    if count > PARAMETERS:
        sizes = f"{layers} layers of width {width}, feed-forward parts of width {feedforward}"
        raise ConfigError(f"{sizes} have {count} parameters; at most {PARAMETERS} are allowed, make the model smaller")
