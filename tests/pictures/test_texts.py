"""Nothing that is written meets anything else that is written, or leaves the picture, whatever is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from structpe import Structure, path, read
from structpe.encodings import Distance, RandomWalk
from structpe.formats import stream
from structpe.pictures import begin, page, pattern, rank, show, similarity
from structpe.pictures.drawing import Drawing
from structpe.pictures.layout import form_of
from structpe.pictures.plan import RELATION, wrapped
from structpe.pictures.style import apart, look, meets, shortened, tall, text_box, wide
from structpe.transforms import grid
from structpe.transforms.nodes import levi
from tests.datasets import FOLDER, SAMPLES, corpus
from tests.pictures.cases import DIMS, FORMS, PARSE, large
from tests.pictures.measuring import faults
from tests.pictures.test_page import plots
from tests.representatives import only

FULL = [(a, b) for a in range(8) for b in range(a + 1, 8)]
SIX, SATELLITES = [f"node {i}" for i in range(6)], [f"satellite {i}" for i in range(16)]
TWO = ("a long label of a node here", "another long label of it")
CITIES = ("北京大学", "Москва", "القاهرة", "दिल्ली", "東京都", "서울", "Αθήνα", "ไทย")
OF_CITIES = ("首都", "город", "مدينة", "शहर", "都市", "도시", "πόλη")
SYMBOLS = ("😀", "🚀 rocket", "👩‍👩‍👧", "🇩🇪", "e\u0301", "Ⅷ")


def graph(nodes: Any, edges: Any, relations: Any = (), **more: Any) -> Structure:
    return Structure(tuple(nodes), np.array(edges, dtype=np.int64).reshape(-1, 2), tuple(relations), **more)


DRAWN = {
    **FORMS,
    "one": path(["one"]),
    "one, no order": graph(["lonely"], []),
    "two": graph("ab", [(0, 1)], ["relation"], order=np.arange(2), root=0),
    "two, long": graph(TWO, [(0, 1)], ["isPartOfSomethingElse"], root=0),
    "two, of a text": graph(TWO, [(1, 0)], ["nsubj"], order=np.arange(2), root=1),
    "nine": large(9, "graph"),
    "thirty": large(30, "graph"),
    "sixty": large(60, "graph"),
    "long sentence": large(60, "tree"),
    "scripts": graph(CITIES, [(0, i) for i in range(1, 8)], OF_CITIES, root=0),
    "symbols": graph(SYMBOLS, [(i, (i + 1) % 6) for i in range(6)], SYMBOLS),
    "parallel": graph(["Alan Bean", "NASA"], [(0, 1)] * 4 + [(1, 0)], ["operator", "employer", "crew", "of", "by"]),
    "parallel below a root": graph(TWO, [(0, 1)] * 4 + [(1, 0)], ["operator", "employer", "crew", "of", "by"], root=0),
    "loops": graph("abcde", [(0, 0), (0, 0), (0, 1), (1, 0), (3, 4)], "stuvw"),
    "loops below a root": graph("abcde", [(0, 0), (0, 0), (0, 1), (1, 0), (3, 4)], "stuvw", root=0),
    "all joined": graph([f"node {i}" for i in range(8)], FULL, [f"relation{i}" for i in range(len(FULL))]),
    "all joined, rooted": graph(SIX, [e for e in FULL if max(e) < 6], "abcdefghijklmno", root=0),
    "star": graph(SATELLITES, [(0, i) for i in range(1, 16)], ["relationOf"] * 15, directed=False),
    "grid": grid((4, 5)),
    "cube": grid((2, 3, 3)),
    "relations as nodes": levi(PARSE),
}  # fmt: skip


LONG = ("sixty", "all joined", "scripts")
"""To draw them takes long; "thirty", "all joined, rooted" and "symbols" are alike."""


@pytest.mark.parametrize("name", only(DRAWN, *(name for name in list(DRAWN)[::2] if name not in LONG)))
def test_texts_do_not_meet(name: str) -> None:
    assert not faults(show(DRAWN[name]))


@pytest.mark.parametrize("name", only(["two, long", "molecule", "graph", "one", "scripts"], "two, long"))
def test_texts_do_not_meet_beside_maps(name: str) -> None:
    position = {"name": "t5", "encoding": "distance"}
    assert not faults(show(DRAWN[name], [Distance(max_distance=3), begin(position, DIMS, list)]))


def sampled() -> Iterator[tuple[str, Structure]]:
    """Some structures of every sample that the project ships."""
    files = {"amr_sample/test.txt": "amr", "kg_sample/test.xml": "webnlg", "trees_sample/sample.conllu": "conllu",
             "molecules_sample/molecules.csv": "smiles"}  # fmt: skip
    for file, reader in files.items():
        items = list(read(SAMPLES / file, reader))
        for place in range(0, len(items), max(1, len(items) // 4)):
            yield f"{file}:{place}", items[place].structure


SAMPLED = dict(sampled())


@pytest.mark.parametrize("name", only(SAMPLED, *list(SAMPLED)[::2]))
def test_texts_of_samples_do_not_meet(name: str) -> None:
    assert not faults(show(SAMPLED[name]))


WEBNLG = [
    "4triples/City",
    "5triples/University",
    "6triples/Monument",
    "7triples/Astronaut",
    "1triples/City_allSolutions",
]
CORPORA = [
    *((f"webnlg/v3.0_en/en/dev/{name}.xml", "webnlg", "hierarchy") for name in WEBNLG),
    ("amr/qald9/qald-9-amr-train.txt", "amr", "hierarchy"),
    ("amr/little_prince/amr-bank-struct-v1.6-test.txt", "amr", "hierarchy"),
    ("amr/massive/massive_amr.txt", "amr", "hierarchy"),
    ("amr/bio/amr-release-dev-bio.txt", "amr", "hierarchy"),
    ("ud/EWT/en_ewt-ud-dev.conllu", "conllu", "tree"),
    ("ud/CS-CLTT/cs_cltt-ud-dev.conllu", "conllu", "tree"),
    ("ud/AF-AfriBooms/af_afribooms-ud-dev.conllu", "conllu", "tree"),
]
FEW = (CORPORA[0], CORPORA[9])
"""One of each form."""


@pytest.mark.parametrize("file", only(CORPORA, *FEW), ids=lambda file: file[0])
def test_a_corpus_is_drawn_in_one_manner(file: tuple[str, str, str]) -> None:
    """Its structures of two nodes or more; the largest and some others without texts that meet."""
    name, reader, form = file
    structures = [item.structure for item in islice(stream(_found(name), reader), 400)]
    assert {form_of(each) for each in structures if each.size > 1} == {form}
    largest = max((each for each in structures if each.size <= 60), key=lambda each: each.size)
    for structure in (largest, structures[len(structures) // 2]):
        assert not faults(show(structure)), structure.name


def _found(file: str) -> Path:
    folder = corpus(file.rpartition("/")[0])
    return folder / file.rpartition("/")[2]


def two_hundred() -> list[Structure]:
    """Structures of all kinds: of the samples, of corpora that are at hand, and drawn at random."""
    files = {"amr_sample/test.txt": "amr", "kg_sample/test.xml": "webnlg", "trees_sample/sample.conllu": "conllu"}
    real = [(SAMPLES / file, reader) for file, reader in files.items()]
    real += [(FOLDER / file, reader) for file, reader, _ in CORPORA if (FOLDER / file).exists()]
    found = [item.structure for file, reader in real for item in islice(stream(file, reader), 5, 10)]
    found += [levi(structure) for structure in found[:16]]
    for size in range(2, 26):
        found += [large(size, form) for form in ("sequence", "tree", "graph")]
    found += [grid((rows, columns)) for rows in range(2, 8) for columns in range(2, 8)]
    random = np.random.default_rng(0)
    while len(found) < 200:
        size = int(random.integers(3, 12))
        edges = random.integers(0, size, (int(random.integers(1, 14)), 2))
        words = [f"{'label' * int(random.integers(0, 4))} {i}" for i in range(size)]
        found.append(graph(words, edges, [f"relation{i}" for i in range(len(edges))], directed=bool(size % 2)))
    return [structure for structure in found if structure.size <= 60][:200]


@pytest.mark.slow
def test_no_two_texts_of_two_hundred_structures_meet() -> None:
    structures = two_hundred()
    assert len(structures) == 200
    assert {form_of(each) for each in structures} >= {"sequence", "tree", "hierarchy", "graph", "grid"}
    for number, structure in enumerate(structures):
        with look():
            drawn = Drawing(structure, most=1000)
            at = placed(drawn)
        assert not [box for number, box in enumerate(at) if meets(box, at[:number])], structure.name
        if number % 20 == 0:  # the plan is what is drawn; some of them are measured to the pixel
            assert not faults(show(structure)), structure.name


# --- the plan: what a page shows too ---

PLANNED = [name for name in DRAWN if name != "molecule"]


@cache
def planned(name: str) -> Drawing:
    with look():
        return Drawing(DRAWN[name], most=1000)


def placed(drawn: Drawing) -> list[Any]:
    """The boxes of all texts of a plan."""
    laid, arcs = drawn.laid, drawn.arcs
    if arcs is not None:
        across = zip(drawn.names, arcs.at, strict=True)
        return [text_box(float(x), -0.2, wide(name, arcs.points), tall(arcs.points)) for name, x in across]
    assert laid is not None
    found = [
        text_box(*at, wide(name, laid.points), tall(laid.points))
        for name, at in zip(drawn.names, laid.texts.tolist(), strict=True)
    ]
    found += [text_box(each.x, each.y, wide(each.text, RELATION, "italic"), tall(RELATION)) for each in laid.relations]
    return found


@pytest.mark.parametrize("name", only([*PLANNED], *(name for name in PLANNED if name != "sixty")))
def test_texts_of_a_page_do_not_meet(name: str) -> None:
    drawn = planned(name)
    with look():
        at = placed(drawn)
    width, height = drawn.size
    low = -drawn.arcs.below if drawn.arcs is not None else 0.0
    for number, box in enumerate(at):
        assert not meets(box, at[:number])
        assert box[0] >= 0
        assert box[1] >= low
        assert box[2] <= width
        assert box[3] <= low + height


def test_what_has_no_room_is_listed_below() -> None:
    """Every relation is written once: at its edge, or below with its two nodes."""
    for name in ("all joined", "all joined, rooted", "parallel", "star", "loops below a root"):
        structure, laid = DRAWN[name], planned(name).laid
        assert laid is not None
        told = "    ".join(laid.below).split("    ") if laid.below else []
        written = [each.text for each in laid.relations] + [each.rpartition(": ")[2] for each in told]
        assert sorted(written) == sorted(structure.relations)
    with look():
        laid = Drawing(graph("ab", [(0, 0)] * 30, [f"relation{i}" for i in range(30)])).laid
    assert laid is not None
    assert laid.below[-1].endswith("a → a: relation29")


def test_boxes_are_moved_apart() -> None:
    random = np.random.default_rng(0)
    for count in (2, 30, 200):
        middles, sizes = random.normal(size=(count, 2)), random.uniform(0.1, 1.0, (count, 2))
        middles[1] = middles[0]
        at = apart(middles, sizes)
        found = [text_box(*middle, *size) for middle, size in zip(at, sizes - 1e-5, strict=True)]
        assert not any(meets(box, found[:number]) for number, box in enumerate(found))
    far = np.array([(0.0, 0.0), (5.0, 0.0)])
    np.testing.assert_array_equal(apart(far, np.ones((2, 2))), far)


def test_lists_are_wrapped_and_titles_cut_in_the_middle() -> None:
    with look():
        lines = wrapped(["one: a", "two: b", "three: c"], wide("one: a    two: b", RELATION) + 0.01)
    assert lines == ["one: a    two: b", "three: c"]
    assert shortened("a/long/path/of/a/file.txt: 3 nodes", 21) == "a/long/pat…t: 3 nodes"
    assert shortened("short", 21) == "short"
    title = show(path(["a"], name="folder/" * 60 + "end")).get_suptitle()
    assert title.startswith("folder/")
    assert title.endswith("end: 1 node, 0 edges")
    assert len(title) < 152


# --- figures of a study ---

NAME = "a model, or its options, of a name that goes on and on and on"


@pytest.mark.slow
@pytest.mark.parametrize("count", only([1, 3, 8, 30], 3))
def test_texts_of_figures_do_not_meet(count: int) -> None:
    """Of so many heads, matrices and curves."""
    if count <= 8:
        assert not faults(pattern.draw(torch.rand(count, 9, 9), f"{NAME}: {NAME}", [4]))
    if count <= 3:
        matrices = {f"{name}{NAME}": torch.rand(9, 9) for name in range(count)}
        assert not faults(similarity.draw(matrices, f"{NAME}: {NAME}"))
    values = {f"{name}{NAME}": torch.rand(9) for name in range(count)}
    assert not faults(rank.draw(values, {"d_h": 7, "2 d_h": 8, "d": 9, "d_p": 1}, f"{NAME}: {NAME}"))


@pytest.mark.parametrize("count", only([3, 30, 60, 79, 200], 3, 79))
def test_maps_of_a_page_name_as_many_rows_as_there_is_room_for(count: int) -> None:
    layout = plots(page(path([f"word{i}" for i in range(count)]), [Distance(max_distance=2), RandomWalk(steps=40)]))
    for _, shown in (layout["map0"], layout["map1"]):
        room = (shown["height"] - shown["margin"]["t"] - shown["margin"]["b"]) / count
        ticks = shown["yaxis"]["tickvals"]
        assert len(ticks) == 1 or (ticks[1] - ticks[0]) * room >= 11
    across = layout["map1"][1]
    room = (across["width"] - across["margin"]["l"] - across["margin"]["r"]) / 40
    ticks = across["xaxis"]["tickvals"]
    assert (ticks[1] - ticks[0]) * room >= 2 * 6


def test_fonts_are_those_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib import rcParams

    from structpe.pictures import style as style_module

    assert style_module.families()[0] == "DejaVu Sans"
    monkeypatch.setattr(style_module, "OTHERS", ("No Such Font", "STIXGeneral"))
    with look():
        assert rcParams["font.family"] == ["DejaVu Sans", "STIXGeneral"]
        assert not faults(show(path(["a", "\u2a6f"])))
