"""Encodings: what is computed from a structure. One file per subject; a registry finds them.

Each class can be imported from here, ``from structpe.encodings import Distance``, wherever its file is.
"""

from structpe.encodings.base import ENCODINGS, UNREACHABLE, WITHIN, Column, Encoded, Encoding

__all__ = ["ENCODINGS", "UNREACHABLE", "WITHIN", "Column", "Encoded", "Encoding"]

__getattr__, __dir__ = ENCODINGS.face()
