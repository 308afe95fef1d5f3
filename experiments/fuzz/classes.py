"""What comes from outside besides files for readers, by name."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import archives
import configurations
import escapes
import indexes
import molecules
import pickles

__all__ = ["CLASSES"]


class Class(NamedTuple):
    """Something that comes from outside.

    Attributes:
        make: (chance) -> an input.
        take: (input, an empty folder) -> nothing, or a StructPEError.
    """

    make: Callable[[random.Random], bytes]
    take: Callable[[bytes, Path], object]


MODULES = (configurations, archives, indexes, pickles, escapes, molecules)
CLASSES = {module.__name__: Class(module.make, module.take) for module in MODULES}
