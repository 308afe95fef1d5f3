"""Mappings: rows of data sets with an ``edge_index``, and the fields of a structure by name.

See :mod:`structpe.readers._rows` for what becomes of each column.
"""

from __future__ import annotations

from structpe.converters.base import add_converter
from structpe.readers._rows import from_mapping

__all__ = ["from_mapping"]

add_converter("rows", "builtins.dict", "rows of data sets with edge_index, and fields of structures", from_mapping)
