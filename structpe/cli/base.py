"""A command is a word after ``structpe``: the arguments it takes, and what it does.

Help must come at once. So a command imports the standard library only, and whatever else it needs when it runs.
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
    """One command; its docstring is its help, the first line of it the help in the list of commands."""

    name: ClassVar[str]
    example: ClassVar[str]
    """Lines that could be typed."""
    overrides: ClassVar[bool] = False
    """Whether options that it does not declare are its own, and come in ``given.overrides``."""

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            cls.name = name
            COMMANDS.add(name, cls)

    @abstractmethod
    def arguments(self, parser: ArgumentParser) -> None:
        """Declare what may be given."""

    @abstractmethod
    def run(self, given: Namespace) -> None:
        """Do it.

        Raises:
            StructPEError: whatever the user can put right.
        """
