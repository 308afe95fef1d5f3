"""Pictures: that they can be read, with 1 node and with 200, and that the same is drawn again."""

from __future__ import annotations

import builtins
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from structpe import Structure, path
from structpe.encodings import Distance, RandomWalk
from structpe.formats.smiles import molecule
from structpe.pictures import PictureError, begin, save, show
from structpe.pictures.heat import Heat
from structpe.pictures.style import label, thinned
from tests.pictures.cases import DIMS, FORMS, MEANING, PARSE, large
from tests.pictures.measuring import boxes, drawn, overlaps
from tests.representatives import only

T5 = {"name": "t5", "encoding": "distance"}


def names(picture: Figure) -> Iterator[list[Text]]:
    """The names of rows and of columns, for each map that has any."""
    for axes in picture.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axes.images and axis.get_ticklabels():
                yield list(axis.get_ticklabels())


@pytest.mark.parametrize("size", only([1, 9, 200], 9))
@pytest.mark.parametrize("form", ["sequence", "tree", "graph"])
def test_names_can_be_read(form: str, size: int) -> None:
    structure = large(size, form)
    picture = show(structure, [Distance()])
    canvas = drawn(picture)
    width, height = canvas.get_width_height()
    for texts in names(picture):
        assert not overlaps(boxes(texts, canvas))
    words = [text for text in picture.axes[0].texts if float(text.get_fontsize()) > 6 or form == "tree"]
    if form != "graph" and words:
        assert not overlaps(boxes([w for w in words if w.get_fontstyle() != "italic"], canvas))
    everything = boxes([text for axes in picture.axes for text in axes.texts], canvas)
    if len(everything):
        assert everything[:, :2].min() > -2
        assert (everything[:, 2:] < [width + 2, height + 2]).all()


@pytest.mark.slow
def test_sizes_are_sensible() -> None:
    one, many = (show(large(size, "graph"), [begin(T5, DIMS, list)]) for size in (1, 120))
    assert all(2 < length < 20 for length in one.get_size_inches())
    assert all(8 < length < 40 for length in many.get_size_inches())


@pytest.mark.parametrize("form", only(FORMS, "tree"))
def test_every_form_is_drawn_beside_an_encoding_and_heads(form: str, tmp_path: Path) -> None:
    structure = FORMS[form]
    picture = show(structure, [RandomWalk(steps=4), begin(T5, DIMS, list)])
    titles = [axes.get_title(loc="left") for axes in picture.axes]
    assert {"random-walk, steps 4", "distance"} <= set(titles)
    assert sum(axes.get_title() == "head 1" for axes in picture.axes) == 1
    header = save(picture, tmp_path / "picture.png").read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    assert min(struct.unpack(">II", header[16:])) > 300


@pytest.mark.parametrize("kind", only(["png", "svg"], "svg"))
def test_the_same_gives_the_same_file(kind: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.{kind}" for name in "abc"]
    for file in files[:2]:
        picture = show(PARSE, [begin(T5, DIMS, list)])
        save(picture, file)
    save(picture, files[2])
    assert len({file.read_bytes() for file in files}) == 1
    assert files[0].stat().st_size > 5000


def test_the_structure_alone() -> None:
    picture = show(MEANING)
    told = [text.get_text() for text in picture.axes[0].texts]
    assert {"want", "boy", "go", "old", "ARG0", "ARG1", "mod"} == set(told)


def test_objects_of_other_libraries_are_shown() -> None:
    import networkx

    picture = show(networkx.path_graph(3), [Distance()])
    assert picture.get_suptitle() == "a structure: 3 nodes, 2 edges"


def test_a_note_is_there_where_heads_cannot_be_shown() -> None:
    picture = show(path(["a", "b"]), [begin("cope", DIMS, list)])
    assert "cope has its own attention" in str([t.get_text() for f in picture.subfigs for t in f.texts])


TEXTS = ("$x_", "$\\frac{$", "a\tb\nc", "\x00", "木 ا", "<b>&amp;", "%d {0}", "x" * 500, " ", "$x_")
LINE = np.array([(i, i + 1) for i in range(len(TEXTS) - 1)])


STRUCTURES = [
    Structure(TEXTS, LINE[:, ::-1], TEXTS[1:], order=np.arange(len(TEXTS))[::-1], root=9, name="".join(TEXTS)),
    Structure(TEXTS, LINE, TEXTS[1:], root=0, name="$$"),
    Structure(TEXTS, LINE, TEXTS[1:], directed=False),
    Structure(TEXTS, np.array([(0, i) for i in range(1, 10)]), TEXTS[1:], order=np.arange(10), root=0),
]


@pytest.mark.parametrize("number", only(range(4), 0))
def test_any_text_may_be_a_label(number: int, tmp_path: Path) -> None:
    save(show(STRUCTURES[number], [Distance()]), tmp_path / "picture.png")


def test_loops_parallel_edges_and_pieces_are_drawn(tmp_path: Path) -> None:
    edges = np.array([(0, 0), (0, 1), (1, 0), (0, 1), (3, 4)])
    save(show(Structure(tuple("abcde"), edges, tuple("rstuv")), [Distance()]), tmp_path / "picture.svg")
    save(show(molecule("[Na+].[Cl-]"), [Distance()]), tmp_path / "picture.svg")


def test_a_parse_is_drawn_with_its_relations_and_root() -> None:
    told = [text.get_text() for text in show(PARSE).axes[0].texts]
    assert {"det", "nsubj", "obj", "root", "keeper", "lamp"} <= set(told)


def test_heads_are_on_one_scale_around_zero() -> None:
    picture = show(PARSE, [begin(T5, DIMS, list)])
    maps = [axes.images[0] for axes in picture.axes if axes.get_title().startswith("head ")]
    assert len(maps) == 2
    assert len({each.get_clim() for each in maps}) == 1
    low, high = maps[0].get_clim()
    assert low == -high


def test_unknown_suffixes(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match=r"picture.bmp' has no known suffix; give one of .png, .svg"):
        save(show(MEANING), tmp_path / "picture.bmp")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", _without("matplotlib"))
    with pytest.raises(Exception, match=re.escape("'matplotlib' is needed for this and is not installed: pip install")):
        show(MEANING)


def _without(package: str) -> Any:
    real = builtins.__import__

    def imported(name: str, *given: Any, **named: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return real(name, *given, **named)

    return imported


def test_thinned_names_are_each_kth() -> None:
    assert list(thinned(5, 10)) == [0, 1, 2, 3, 4]
    assert list(thinned(200, 75)) == list(range(0, 200, 3))
    for count in (1, 10, 99, 1000, 5000):
        assert len(thinned(count, 40)) <= 40
    assert label("  a \n b  ") == "a b"


def test_a_map_without_any_number_is_drawn() -> None:
    from structpe.pictures import heat as heat_module
    from structpe.pictures.style import figure, look

    with look():
        picture = figure(2, 2)
        empty = np.full((2, 2), np.nan)
        heat_module.draw(
            picture.subplots(), Heat("nothing", empty, ("a", "b"), ("c", "d"), special={"no path": empty != 0})
        )
        drawn(picture)
