"""Which converter takes what, and what is said where none does."""

from __future__ import annotations

import subprocess
import sys

import networkx
import pytest

from structpe import StructPEError, as_structure, as_structures, convert, path
from structpe.formats import CONVERTERS


def test_a_structure_is_itself() -> None:
    structure = path(["a", "b"])
    assert as_structure(structure) is structure
    assert as_structures(structure) == [structure]


def test_a_class_that_is_derived_is_claimed() -> None:
    class Mine(networkx.DiGraph):
        pass

    assert as_structure(Mine([(0, 1)])).size == 2


def test_no_library_is_imported_by_the_list() -> None:
    code = "import sys; from structpe.formats import CONVERTERS; list(CONVERTERS); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    packages = {name.partition(".")[0] for known in CONVERTERS.values() for name in known.classes}
    assert not (packages - {"numpy"} - sys.stdlib_module_names) & set(loaded)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(StructPEError, match=r"^no converter takes a builtins\.int; known are objects of .*networkx\."):
        as_structure(1)
    with pytest.raises(StructPEError, match=r"there is no converter named 'networx'\. Did you mean 'networkx'\?"):
        convert(path(["a"]), "networx")
    with pytest.raises(StructPEError, match=r"'networkx' has no option named 'lable'. Did you mean 'label'"):
        as_structure(networkx.Graph(), lable="x")
