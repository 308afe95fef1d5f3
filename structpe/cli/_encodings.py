"""Parsing of encodings on the command line."""

from __future__ import annotations

from typing import Any

from structpe.cli.base import UsageError
from structpe.errors import ConfigError

__all__ = ["parse_encoding"]


def parse_encoding(text: str) -> dict[str, Any]:
    """The plain description of an encoding from its notation on the command line.

    Raises:
        UsageError: it is neither a name, nor NAME:key=value,..., nor a JSON object.
    """
    if not text.startswith("{"):
        name, _, options = text.partition(":")
        pairs = [option.partition("=") for option in options.split(",") if option]
        if not name or not all(key and equals and value for key, equals, value in pairs):
            raise UsageError(f"--encoding {text!r} is not of the form NAME or NAME:key=value,key=value")
        return {"name": name, **{key: _value(text, value) for key, _, value in pairs}}
    described = _value(text, text)  # YAML includes JSON
    if not isinstance(described, dict) or not isinstance(described.get("name"), str):
        raise UsageError(f'--encoding {text!r} has no name; write it as {{"name": "distance", "limit": 8}}')
    return described


def _value(whole: str, text: str) -> Any:
    from structpe.plain import from_yaml

    try:
        return from_yaml(text, "it")
    except ConfigError as error:
        raise UsageError(f"--encoding {whole!r} cannot be read: {error}") from None
