"""Values of a configuration, given on the command line."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

from structpe.cli.base import UsageError

__all__ = ["add_only", "as_overrides"]


def add_only(parser: ArgumentParser) -> None:
    """Declare ``--only``."""
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN",
                        help="runs of a study, such as 'zinc/*/rwse/seed-0'; repeatable")  # fmt: skip


def as_overrides(words: Sequence[str]) -> list[str]:
    """``--key value`` and ``--key=value`` as ``key=value``.

    Raises:
        UsageError: a word is neither key nor value, or a key is given twice.
    """
    overrides: dict[str, str] = {}
    rest = list(words)
    while rest:
        key, equals, value = rest.pop(0).partition("=")
        if not key.startswith("--"):
            raise UsageError(
                f"{key + equals + value!r} is not an option; write --key value, such as --training.steps 100"
            )
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise UsageError(f"option {key!r} has no value; write {key} VALUE")
            value = rest.pop(0)
        if key in overrides:
            raise UsageError(f"option {key!r} is given twice; give it once")
        overrides[key] = f"{key.removeprefix('--')}={value}"
    return list(overrides.values())
