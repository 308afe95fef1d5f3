"""Which machine of several this is, as what has started the processes tells in environment variables."""

from __future__ import annotations

import os

from structpe.errors import ConfigError
from structpe.tasks.training.config import TrainingConfig

__all__ = ["number"]

NAMES = ("NODE_RANK", "GROUP_RANK", "SLURM_NODEID")
"""Where the number of the machine stands: set by hand, by torchrun, by Slurm."""
MEETING = ("MASTER_ADDR", "MASTER_PORT")


def number(training: TrainingConfig) -> int:
    """Which of ``training.nodes`` machines this is, from 0. The first one writes the files of the run.

    Raises:
        ConfigError: there are several, and the environment does not say which this is, or where they meet.
    """
    if training.nodes == 1:
        return 0
    given = next((name for name in NAMES if name in os.environ), NAMES[0])
    found = os.environ.get(given, "")
    lacking = [name for name in MEETING if not os.environ.get(name)]
    if lacking or not found.isdecimal() or int(found) >= training.nodes:
        wrong = f"{lacking[0]} is not set" if lacking else f"{given} is {found!r}" if found else f"{given} is not set"
        raise ConfigError(
            f"training.nodes is {training.nodes}, and {wrong}; start one process on each machine, with its number from "
            f"0 to {training.nodes - 1} in NODE_RANK, and the address and a free port of the first in MASTER_ADDR and "
            f"MASTER_PORT"
        )
    return int(found)
