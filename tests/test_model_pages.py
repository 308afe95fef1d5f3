"""The pages of position models and encodings are made from the registries, and what they say to do runs."""

from __future__ import annotations

import importlib
import importlib.util
import io
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from structpe.encodings import ENCODINGS
from structpe.pictures.head_patterns import weights_of
from structpe.pictures.setting import Setting, first_layer
from structpe.plain.yaml import from_yaml
from structpe.positions import MODELS, Dims, build
from tests.modules import ROOT
from tests.representatives import fewer


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    sys.path.append(str(ROOT / "docs" / "site"))
    spec = importlib.util.spec_from_file_location("model_pages", ROOT / "docs" / "site" / "model_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and caches look it up
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(ROOT / "docs" / "site"))


@pytest.fixture(scope="module")
def every(pages: ModuleType) -> dict[str, str]:
    """All pages, which takes a quarter of a minute."""
    folder = Path("pages")
    return {str(file.relative_to(folder)): text for file, text in pages.written(folder).items()}


@pytest.fixture(scope="module")
def written(pages: ModuleType) -> Written:
    return Written(pages)


class Written(dict[str, str]):
    """Each page when it is asked for."""

    def __init__(self, pages: ModuleType) -> None:
        self.pages = pages

    def __missing__(self, name: str) -> str:
        make = self.pages.encoding_page if name.startswith("encodings/") else self.pages.model_page
        self[name] = str(make(Path(name).stem))
        return self[name]


def ran(page: str) -> tuple[str, dict[str, Any], str]:
    """The lines of use of a page, what they define when they run as they stand, and what the page says they print."""
    program = page.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()) as printed:
        exec(program, names)
    assert page.partition("```python\n")[2].partition("```text\n")[2].partition("```")[0] == printed.getvalue()
    return program, names, printed.getvalue()


@pytest.mark.slow
def test_there_is_a_page_for_each_model_and_encoding(every: dict[str, str]) -> None:
    models = {f"{name}.md" for name in MODELS}
    assert every.keys() == models | {f"encodings/{name}.md" for name in ENCODINGS}


@pytest.mark.slow
def test_each_page_of_a_model_has_all_parts(every: dict[str, str]) -> None:
    needed = [
        "Formula and symbols",
        "Structures that it takes",
        "Its row of Table 1",
        "Kernels, decoding, compiling",
        "What it was checked against",
        "Use it",
        "BibTeX",
    ]
    drawn = 0
    for name in MODELS:
        page = every[f"{name}.md"]
        heads = re.findall(r"^## (.+)$", page, re.MULTILINE)
        assert [head for head in heads if head in needed] == needed, name
        assert "```bibtex\n@" in page, name
        drawn += "What it does to attention" in heads
    assert drawn > 0.9 * len(MODELS)


def test_a_page_says_what_its_model_was_checked_against(written: dict[str, str]) -> None:
    assert (
        "* Numbers made by the authors' code: ofirpress/attention_with_linear_biases 4b92f28 (" in written["alibi.md"]
    )
    assert "* Numbers made by another library: transformers 5.23 (T5Attention)" in written["t5.md"]
    assert "* The repository has no numbers of the authors' code for it." in written["cape.md"]
    assert "`tests/positions/test_cape.py`" in written["cape.md"]


def test_sources_are_written_as_people_read_them(written: dict[str, str]) -> None:
    line = re.search(r"^Source: (.*)$", written["graformer.md"], re.MULTILINE)
    assert line is not None
    assert line[1].startswith(
        "Martin Schmitt, Leonardo F. R. Ribeiro, Philipp Dufter, Iryna Gurevych, Hinrich Schütze. ["
    )
    assert "](https://doi.org/10.18653/v1/2021.textgraphs-1.2). " in line[1]
    assert line[1].endswith(", 2021.")


@pytest.mark.slow
def test_no_source_has_marks_of_bibtex(every: dict[str, str]) -> None:
    for name in MODELS:
        (line,) = re.findall(r"^Source: (.*)$", every[f"{name}.md"], re.MULTILINE)
        assert not re.search(r"[{}\\$]|\.\.|, ,|\*\*", line), (name, line)


@pytest.mark.slow
def test_the_options_of_a_page_build_the_model(every: dict[str, str]) -> None:
    built = 0
    for name in MODELS:
        config = from_yaml(every[f"{name}.md"].partition("```yaml\n")[2].partition("```")[0])
        assert config["name"] == name
        if all(value is not None for value in config.values()):
            built += build(config, Dims(512, 8, 6)) is not None
    assert built > 100


CARD = ("zhu", "cai", "graphormer", "graph-bert")


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in MODELS if name.startswith(CARD)),
        *fewer([name for name in MODELS if not name.startswith(CARD)]),
    ],
)
def test_the_lines_of_use_run_as_shown_and_say_what_is_so(pages: ModuleType, name: str) -> None:
    program, names, printed = ran(pages.use(pages.lines(name)))
    structure, model = names["structure"], names["model"]
    assert any(made in program for made in pages.MADE[model.spec.structure])
    assert names["out"].isfinite().all()
    assert f"parameters: {model.claimed_params()}\n" in printed
    assert printed.endswith(f"a vector for each unit: (1, {structure.unit_count}, 32)\n")
    assert all(len(line) <= 100 for line in program.splitlines())


@pytest.mark.slow
def test_each_page_of_a_model_has_its_lines_of_use(pages: ModuleType, every: dict[str, str]) -> None:
    for name in MODELS:
        assert pages.use(pages.lines(name)) in every[f"{name}.md"]


def test_what_a_page_says_that_a_model_takes_is_so(written: dict[str, str]) -> None:
    rotary, spr, distance = written["rotary.md"], written["spr-rel.md"], written["graphormer.md"]
    assert "| a graph | no: encoding 'order': the structure has no reading order" in rotary
    assert "| a tree | yes |" in spr
    assert "| a grid | no: " in spr
    assert distance.count("| yes |") >= 4
    assert "| a graph | `[0, 1, 2, 2, 1, 2]` |" in written["encodings/undirected-distance.md"]
    assert "[`spr-rel`](../spr-rel.md)" in written["encodings/spr-relative.md"]


@pytest.mark.parametrize("name", ["rotary", "t5", "lap-pe"])
def test_pictures_show_the_weights_of_units_with_the_same_content(
    pages: ModuleType, written: dict[str, str], name: str
) -> None:
    weights, used = pages.layer(name, "a tree")
    expected = weights_of(*first_layer(name, Setting(Dims(32, 2, 1), same=True, structure=pages.PARSE)))[0, 0]
    assert torch.allclose(torch.from_numpy(weights), expected)
    assert float(weights.std(axis=-1).max()) > 1e-3  # positions make a difference
    assert used == first_layer(name, Setting(Dims(32, 2, 1), structure=pages.PARSE))[2].used()
    drawing = written[f"{name}.md"].partition('aria-label="attention weights on a tree"')[2].partition("</svg>")[0]
    told = [float(value) for value in re.findall(r"<title>[^<]*: ([\d.]+)</title>", drawing)]
    assert told == [round(value, 2) for value in weights.flatten().tolist()]


def test_a_model_with_its_own_attention_has_no_picture(pages: ModuleType, written: dict[str, str]) -> None:
    assert pages.layer("lspe", "a graph") == (None, None)
    assert "<svg" not in written["lspe.md"]


def test_no_two_texts_of_a_picture_meet(written: dict[str, str]) -> None:
    """Names of rows end before the cells; names of columns are a cell apart and inside of the picture."""
    names = set(re.findall(r'text-anchor="end">([^<]*)</text>', written["t5.md"]))
    assert names
    assert max(map(len, names)) * 6.2 < 50 - 5


@pytest.mark.slow
def test_each_page_of_an_encoding_has_all_parts(every: dict[str, str]) -> None:
    needed = ["What it computes", "Its values on four structures", "Use it", "Which position models take it"]
    drawn = cited = 0
    for name in ENCODINGS:
        page = every[f"encodings/{name}.md"]
        heads = re.findall(r"^## (.+)$", page, re.MULTILINE)
        assert [head for head in heads if head in needed] == needed, name
        assert page.count("\nSource: ") == page.count("```bibtex\n@"), name
        drawn += "<svg" in page
        cited += "\nSource: " in page
    assert drawn > 0.8 * len(ENCODINGS)
    assert cited > 0.5 * len(ENCODINGS)
    assert "\nSource: Philipp Dufter, Martin Schmitt, Hinrich Schütze. [Position" in every["encodings/offset.md"]


@pytest.mark.parametrize("name", ENCODINGS)
def test_the_lines_that_encode_run_as_shown(pages: ModuleType, name: str) -> None:
    program, names, printed = ran(pages.use(pages.encode_lines(name)))
    assert printed.strip() == str(names["positions"][name])
    assert all(len(line) <= 100 for line in program.splitlines())


def test_the_picture_of_an_encoding_shows_its_values(pages: ModuleType, written: dict[str, str]) -> None:
    page = written["encodings/distance.md"]
    (of_tree,) = re.findall(r'<svg[^>]*aria-label="values on a tree">.*?</svg>', page)
    told = re.findall(r"<title>(\w+) to (\w+): ([^<]+)</title>", of_tree)
    assert len(told) == 36
    assert ("the", "keeper", "-1") in told
    assert ("lit", "the", "2") in told
    assert ("old", "the", "no path") in told
    assert told.count(("old", "old", "0")) == 1
    assert "Cells without a number: no path." in page
    walks = written["encodings/rrwp.md"]
    number = re.search(r"shown is number (\d) of each pair", walks)
    assert number is not None
    assert number[1] in "12345"  # the identity says nothing, and no path of six nodes has six steps
    (of_graph,) = re.findall(r'<svg[^>]*aria-label="values on a graph">.*?</svg>', walks)
    shown = [float(value) for value in re.findall(r"<title>[^<]+: ([\d.]+)</title>", of_graph)]
    expected = ENCODINGS["rrwp"]().one(pages.KINDS["a graph"]).pairs()[:, :, int(number[1])]
    assert shown == pytest.approx(expected.flatten().tolist(), abs=0.00501)


@pytest.mark.parametrize("fill", ["#000000", "#440154", "#fde725", "#ffffff", "#7f7f7f", "#35b779"])
def test_numbers_can_be_read_on_their_colours(fill: str, pages: ModuleType) -> None:
    maps = importlib.import_module("maps")

    def luminance(colour: str) -> float:
        channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    lighter, darker = sorted((luminance(fill), luminance(maps.ink(fill))), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5
