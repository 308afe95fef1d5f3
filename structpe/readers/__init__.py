"""Readers: from a file, or a folder of files, to structures. One file per format; the registry finds them by name."""

from structpe.readers.base import READERS, Item, Reader, Reading, Skipped, read, stream
from structpe.readers.tree import tree
from structpe.readers.triples import triples

__all__ = ["READERS", "Item", "Reader", "Reading", "Skipped", "read", "stream", "tree", "triples"]
