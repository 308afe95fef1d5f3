"""How a run reads files: its data, and others that its model is given later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from structpe.errors import ConfigError

__all__ = ["NO_READER", "Reads"]

NO_READER = (
    "the run has no reader of its own, as its training files are of several formats, or gone; say what the new file is "
    "by --reader, or give the items of structpe.read(FILE, reader=...)"
)


class Reads(NamedTuple):
    """How a run reads files.

    Attributes:
        reader: name of the reader; None if it has none, or several.
        options: options of the reader.
        on_error: what to do with bad items.
        by_suffix: whether a file may be read by its suffix if there is no reader.
    """

    reader: str | None
    options: Mapping[str, Any]
    on_error: Literal["raise", "skip"] = "raise"
    by_suffix: bool = False

    def but(
        self,
        reader: str | None = None,
        options: Mapping[str, Any] | None = None,
        on_error: Literal["raise", "skip"] | None = None,
    ) -> Reads:
        """The same, except for what is given.

        Args:
            reader: name of a reader. Options of the run are those of its own reader only.
            options: options of the reader.
            on_error: what to do with bad items.

        Raises:
            ConfigError: no reader is given, and the run has none.
        """
        if reader is None and self.reader is None and not self.by_suffix:
            raise ConfigError(NO_READER)
        kept = self.options if reader in (None, self.reader) else {}
        return Reads(reader or self.reader, {**kept, **(options or {})}, on_error or self.on_error, self.by_suffix)
