"""A command is a word after ``structpe``, with its arguments and its function.

Help must be fast. So the module of a command imports the standard library only, and everything else when it runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from typing import ClassVar

from structpe.errors import StructPEError
from structpe.registry import Registered, Registry

__all__ = ["COMMANDS", "Command", "UsageError", "check_counts", "refuse_idle"]


class UsageError(StructPEError):
    """A command line that cannot be understood."""


def check_counts(**counts: int | None) -> None:
    """Check numbers of processes or threads, by the name of their argument; None is not given.

    Raises:
        UsageError: a number is less than 1, or there are too many.
    """
    from structpe.plain.bounds import PROCESSES

    for name, number in counts.items():
        if number is not None and number < 1:
            raise UsageError(f"--{name} is {number}; give 1 or more")
        if number is not None and number > PROCESSES:
            raise UsageError(f"--{name} is {number}; at most {PROCESSES} is allowed, give a smaller number")


def refuse_idle(given: Namespace, why: str, *options: str) -> None:
    """Check that options which cannot act are not given.

    Args:
        given: the arguments; ``given.named`` holds the options on the command line.
        why: for the error, when they cannot, such as ``with --table``.
        options: such as ``--jobs``.

    Raises:
        UsageError: one is given.
    """
    if idle := [option for option in options if option in given.named]:
        raise UsageError(f"{idle[0]} has no effect {why}; leave it out")


COMMANDS: Registry[type[Command]] = Registry("structpe.cli", "command", UsageError)
"""Every command by its name."""


class Command(Registered, ABC):
    """One command; its docstring is its help, the first line also the help in the list of commands."""

    registry = COMMANDS
    example: ClassVar[str]
    """Examples of command lines."""
    overrides: ClassVar[bool] = False
    """Whether it accepts undeclared options, as ``given.overrides``."""

    @abstractmethod
    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""

    @abstractmethod
    def run(self, given: Namespace) -> None:
        """Run the command.

        Raises:
            StructPEError: any error that the user can correct.
        """
