"""A command is a word after ``structpe``, with its arguments and its function.

Help must be fast. So the module of a command imports the standard library only, and everything else when it runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from typing import Any, ClassVar

from structpe.errors import StructPEError
from structpe.registry import Registry

__all__ = ["COMMANDS", "Command", "UsageError"]


class UsageError(StructPEError):
    """A command line that cannot be understood."""


COMMANDS: Registry[type[Command]] = Registry("structpe.cli", "command", UsageError)
"""Every command by its name."""


class Command(ABC):
    """One command; its docstring is its help, the first line also the help in the list of commands."""

    name: ClassVar[str]
    example: ClassVar[str]
    """Examples of command lines."""
    overrides: ClassVar[bool] = False
    """Whether it accepts undeclared options, as ``given.overrides``."""

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            cls.name = name
            COMMANDS.add(name, cls)

    @abstractmethod
    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""

    @abstractmethod
    def run(self, given: Namespace) -> None:
        """Run the command.

        Raises:
            StructPEError: any error that the user can correct.
        """
