"""Converters: from an object of another library to a structure, and back. One file per library; a registry finds them.

``as_structure(thing)`` chooses a converter by the class of the thing; ``convert(structure, "networkx")`` is the
inverse.
"""

from structpe.converters._dgl_import import import_dgl
from structpe.converters.base import CONVERTERS, Converter, as_structure, as_structures, convert, each_structure

__all__ = ["CONVERTERS", "Converter", "as_structure", "as_structures", "convert", "each_structure", "import_dgl"]
