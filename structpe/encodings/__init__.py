"""Encodings: what is computed from a structure. One file per subject; the registry finds them by name."""

from structpe.encodings.base import ENCODINGS, UNREACHABLE, WITHIN, Encoded, Encoding

__all__ = ["ENCODINGS", "UNREACHABLE", "WITHIN", "Encoded", "Encoding"]
