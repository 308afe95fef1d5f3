"""Encodings on the command line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from typing import TYPE_CHECKING, Any

from structpe.cli._reading import parse_yaml
from structpe.cli.base import UsageError

if TYPE_CHECKING:
    from structpe.encodings import Encoding

__all__ = ["add_encodings", "encodings_of", "parse_encoding"]


def add_encodings(parser: ArgumentParser, required: bool = False) -> None:
    """Declare ``--encoding``."""
    parser.add_argument("--encoding", metavar="NAME", dest="encodings", action="append", required=required, default=[],
                        help="may be given several times; 'structpe positions --encodings' lists them")  # fmt: skip


def encodings_of(given: Namespace) -> list[Encoding]:
    """The encodings that are given, as :func:`parse_encoding` describes them."""
    from structpe.positions.build import build_encoding

    return [build_encoding(parse_encoding(each)) for each in given.encodings]


def parse_encoding(text: str) -> dict[str, Any]:
    """The plain description of an encoding from its notation on the command line.

    Raises:
        UsageError: it is neither a name, nor NAME:key=value,..., nor a JSON object, or gives an option twice.
    """
    if not text.startswith("{"):
        name, _, options = text.partition(":")
        pairs = [option.partition("=") for option in options.split(",") if option]
        if not name or not all(key and equals and value for key, equals, value in pairs):
            raise UsageError(f"--encoding {text!r} is not of the form NAME or NAME:key=value,key=value")
        if twice := next((key for key, times in Counter(key for key, _, _ in pairs).items() if times > 1), None):
            raise UsageError(f"--encoding {text!r} gives {twice!r} twice; give it once")
        return {"name": name, **{key: parse_yaml(value, f"--encoding {text!r}") for key, _, value in pairs}}
    described = parse_yaml(text, f"--encoding {text!r}")  # YAML includes JSON
    if not isinstance(described, dict) or not isinstance(described.get("name"), str):
        raise UsageError(f'--encoding {text!r} has no name; write it as {{"name": "distance", "max_distance": 8}}')
    return described
