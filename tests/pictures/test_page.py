"""Pages: that they need nothing but themselves, and hold every row."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpe.encodings import Distance, RandomWalk
from structpe.pictures import PictureError, begin, page, save_page
from structpe.pictures.drawing import Drawing
from structpe.pictures.heat import heat_of
from structpe.pictures.page import graph_of
from structpe.structure import Structure, path
from tests.pictures.cases import ASPIRIN, DIMS, FORMS, PARSE, large
from tests.representatives import only

T5 = {"name": "t5", "encoding": "distance"}


class Elements(HTMLParser):
    """Every element with its attributes, and the texts of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.all and self.all[-1][0] == "script":
            self.scripts.append(data)


def said(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="said">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def plots(text: str) -> dict[str, tuple[Any, Any]]:
    """Data and layout of each plot by its name."""
    found: dict[str, tuple[Any, Any]] = {}
    decoder = json.JSONDecoder()
    for match in re.finditer(r'Plotly\.newPlot\(\s*"(\w+)",\s*', text):
        data, end = decoder.raw_decode(text, match.end())
        layout, _ = decoder.raw_decode(text, re.compile(r",\s*").match(text, end).end())  # type: ignore[union-attr]
        found[match[1]] = (data, layout)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_page_asks_nothing_of_the_network(form: str) -> None:
    text = page(FORMS[form], [Distance(), begin(T5, DIMS, list)])
    elements = Elements(text)
    for tag, attributes in elements.all:
        for name in ("src", "href", "data", "action", "srcset"):
            assert not re.match(r"\s*(https?:)?//", attributes.get(name) or ""), (tag, attributes)
        assert tag not in ("link", "iframe", "object", "embed", "img")
        assert not (tag == "script" and "src" in attributes)
    for _, layout in plots(text).values():
        for image in layout.get("images", []):
            assert image["source"].startswith("data:image/svg+xml;base64,")
    assert len([script for script in elements.scripts if len(script) > 1_000_000]) == 1, "plotly itself, once"


def test_all_rows_are_in_it() -> None:
    text = page(PARSE, [Distance(), RandomWalk(steps=4), begin(T5, DIMS, list)])
    found, told = plots(text), said(text)
    distance = heat_of(PARSE, Distance())
    rows = found["map0"][0][0]["z"]
    np.testing.assert_array_equal(np.array(rows, dtype=float), distance.values)
    walks = np.array(found["map1"][0][0]["z"])
    np.testing.assert_allclose(walks, heat_of(PARSE, RandomWalk(steps=4)).values, rtol=1e-4)
    assert told["nodes"] == list(PARSE.nodes)
    assert told["owner"] == [0, 1, 2, 3, 4]
    assert [each["title"] for each in told["maps"]] == [
        "distance",
        "random-walk, steps 4",
        "all layers, alike, head 1",
        "all layers, alike, head 2",
    ]
    assert told["maps"][0]["special"]["0,3"] == "no path"
    assert set(found) == {"graph", "map0", "map1", "head0", "head1", "curves"}
    assert len(found["graph"][0][told["nodeTrace"]]["x"]) == PARSE.size
    assert found["head0"][0][0]["zmin"] == -found["head0"][0][0]["zmax"] == found["head1"][0][0]["zmin"]


def test_texts_cannot_leave_their_place() -> None:
    evil = "</script><script>alert(1)</script>"
    structure = Structure((evil, "b"), np.array([(0, 1)]), (evil,), root=0, name=evil)
    text = page(structure, [Distance()])
    assert evil not in text
    assert said(text)["nodes"][0] == evil


@pytest.mark.parametrize("size", only([1, 30, 200], 1, 30))
@pytest.mark.parametrize("form", ["sequence", "tree", "graph"])
def test_each_node_is_in_it(form: str, size: int) -> None:
    told = said(page(large(size, form), [Distance(max_distance=4)]))
    assert len(told["nodes"]) == size


def test_a_molecule_is_rdkit_s_picture_under_its_atoms() -> None:
    figure, nodes = graph_of(Drawing(ASPIRIN))
    (image,) = figure["layout"]["images"]
    assert image["sizex"] == image["sizey"] == Drawing(ASPIRIN).depiction.size[0]  # type: ignore[union-attr]
    assert len(figure["data"][nodes]["x"]) == ASPIRIN.size


def test_too_large_for_a_page() -> None:
    with pytest.raises(PictureError, match=r"^long: the structure has 401 units and 160801 cells in its maps, a page"):
        page(path(["a"] * 401, name="long"), [Distance(max_distance=2)])


def test_saving(tmp_path: Path) -> None:
    assert save_page("<p>", tmp_path / "page.html").read_text(encoding="utf-8") == "<p>"
    with pytest.raises(PictureError, match=r"page.htm' has not the suffix of a page; give one that ends in .html"):
        save_page("<p>", tmp_path / "page.htm")
