"""The command line. One file per command; the registry finds them."""

from structpe.cli.base import COMMANDS, Command, UsageError

__all__ = ["COMMANDS", "Command", "UsageError"]
