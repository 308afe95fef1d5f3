"""The documentation runs: each page is one session, from top to bottom, and prints what the page says it prints."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path
from statistics import fmean
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import pytest

from structpe.datasets import BENCHMARKS
from structpe.encodings import ENCODINGS
from structpe.formats import CONVERTERS, READERS, WRITERS
from structpe.positions import MODELS
from structpe.positions.citing import reference
from structpe.registry import IMPORTS, Registry
from tests.cli.running import structpe
from tests.forking import forked
from tests.modules import ROOT, modules
from tests.together import together

MADE = {ROOT / "docs" / "catalogue.md", ROOT / "docs" / "cheatsheet.md"}
"""Made from the registry when the pages are built; git ignores them."""
APART = {"catalogue", "decisions", "api", "auto_gallery"}
"""Folders of pages that are made when the site is built, or that show no program."""
PAGES = sorted(
    page for page in {*(ROOT / "docs").rglob("*.md")} - MADE if page.relative_to(ROOT / "docs").parts[0] not in APART
)
LONG = {"parsing.md", "pretrained.md", "reliability.md", "7_from_amr_to_text.md", "8_a_fair_comparison.md"}
LONG |= {"2_absolute_or_relative.md", "3_trees.md", "graph_to_text.md", "predict.md", "benchmarks.md", "encodings.md"}
LONG |= {"pictures.md", "cookbook.md", "adapters.md", "scale.md", "files.md", "datasets.md", "pyg_dataset.md"}
LONG |= {"get_started.md", "1_what_a_position_is.md", "idea.md", "4_graphs.md", "compile.md", "positions.md"}
LONG |= {"6_make_your_own.md", "own_encoding.md"}
"""Pages that take about a second or more."""
TRIED = [pytest.param(page, marks=[pytest.mark.slow] if page.name in LONG else []) for page in PAGES]
BLOCK = re.compile(
    r"^(?:<!-- (?:not run: (?P<reason>[^\n]+)|exits (?P<code>\d+)|file: (?P<file>\S+)) -->\n)?"
    r"```(?P<language>\w*|{formula})\n(?P<text>.*?)^```$"
    r"(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
"""A fenced block, why it is not run, how it ends or the file that it is, and the block of text right behind it: what it
prints."""
FACES = {"data", "datasets", "encodings", "formats", "nn", "parsing", "pictures", "positions", "tasks", "adapters", ""}
FACES |= {f"adapters.{name}" for name in ("dgl", "pyg", "pytorch", "transformers")} | {"attention"}
"""The modules of ``structpe`` from which pages import, the package itself among them; the rest are their attributes."""
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


class Block(NamedTuple):
    """A fenced block of a page."""

    reason: str | None
    code: str | None
    file: str | None
    language: str
    text: str
    output: str | None


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in (match.groups() for match in BLOCK.finditer(page.read_text(encoding="utf-8")))]


def commands(text: str) -> list[list[str]]:
    """The words of each line that begins with ``$``; a line that ends in a backslash goes on in the next."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line[2:]) for line in lines if line.startswith("$ ")]


def run(page: Path, folder: Path, languages: Sequence[str] = ("python", "console")) -> Iterator[tuple[str, Block, str]]:
    """Where each block that is run stands, the block, and what it prints."""
    session: dict[str, object] = {"__name__": page.stem}
    for number, block in enumerate(blocks(page), 1):
        where = f"{page.name}, block {number}"
        if block.file is not None:
            (folder / block.file).write_text(block.text, encoding="utf-8")
        if block.reason is not None or block.file is not None or block.language not in languages:
            continue
        if block.language == "python":
            with redirect_stdout(io.StringIO()) as printed:
                exec(compile(block.text, where, "exec", dont_inherit=True), session)
            yield where, block, printed.getvalue()
        else:
            code = int(block.code or 0)
            yield where, block, "".join(_command(words, folder, where, code) for words in commands(block.text))


def _command(words: list[str], folder: Path, where: str, code: int) -> str:
    assert words[0] == "structpe", f"{where}: say why {words[0]!r} is not run, in <!-- not run: reason --> above"
    done = structpe(*words[1:], folder=folder)
    assert done.returncode == code, f"{where}: {done.stderr}"
    return done.stderr if code else done.stdout


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with what pages read of the repository, where they may write; what they register goes again."""
    for name in ("datasets", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(IMPORTS, "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    registries: list[Registry[object]] = [MODELS, ENCODINGS, READERS, WRITERS, CONVERTERS, BENCHMARKS]  # type: ignore[list-item]
    known = [set(registry) for registry in registries]
    yield tmp_path
    for registry, before in zip(registries, known, strict=True):
        for name in set(registry) - before:
            registry.forget(name)
    for name in [name for name, module in sys.modules.items() if _lies_in(tmp_path, module)]:
        del sys.modules[name]


def _lies_in(folder: Path, module: ModuleType) -> bool:
    return (getattr(module, "__file__", None) or "").startswith(f"{folder}{os.sep}")


@pytest.mark.early
@pytest.mark.parametrize("page", TRIED, ids=lambda page: page.name)
def test_a_page_runs_and_prints_what_it_says(page: Path, workplace: Path) -> None:
    if importlib.util.find_spec("dgl") is None and "import_dgl()" in page.read_text(encoding="utf-8"):
        pytest.skip("DGL has no release for this Python or machine")
    for where, block, printed in run(page, workplace):
        if block.output is not None:
            same = OutputChecker().check_output(block.output, printed, ELLIPSIS)
            assert same, f"{where} prints\n{printed}\nand the page says\n{block.output}"


def test_the_readme_runs(workplace: Path) -> None:
    # Its commands train for minutes; docs/graph_to_text.md runs the same ones for a few steps.
    ran = [block for _, block, _ in run(ROOT / "README.md", workplace, ["python"])]
    assert len(ran) >= 4


@together("page", PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    files = [(page.parent / link).resolve() for link in LINK.findall(page.read_text(encoding="utf-8"))]
    assert not [file for file in files if file not in MADE and not file.exists()]


def test_links_lead_from_the_first_page_to_every_other() -> None:
    found, new = set[Path](), {ROOT / "docs" / "index.md"}
    while new:
        found |= new
        links = {(page.parent / link).resolve() for page in new for link in LINK.findall(page.read_text("utf-8"))}
        new = (links & {*PAGES}) - found
        found |= links & MADE
    assert {*PAGES} | MADE <= found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Markdown alone, built; ``make docs`` adds the gallery and the API. A warning is an error."""
    page, printed = tmp_path_factory.mktemp("pages"), tmp_path_factory.mktemp("printed")
    words = ("-t", "pages", "-q", "-W", "--keep-going", str(ROOT / "docs"), str(page))
    code, _, err = forked(printed, "sphinx", *words).ended()
    assert code == 0, err
    return page


@pytest.mark.slow
def test_sphinx_builds_the_pages_without_a_warning(site: Path) -> None:
    assert (site / "howto" / "choose.html").is_file()
    for page in PAGES:
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).is_file()


@pytest.mark.slow
def test_a_search_finds_models_by_paper_and_author(site: Path) -> None:
    from sphinx.search.en import SearchEnglish

    language = SearchEnglish({})
    index = json.loads((site / "searchindex.js").read_text(encoding="utf-8").removeprefix("Search.setIndex(")[:-1])
    for name, model in MODELS.items():
        entry = reference(model.spec.cite)
        authors = re.findall(r"([A-Za-z]{4,})(?: and |\},?$)", entry.partition("author")[2].partition("\n")[0])
        authors = [each for each in authors if each != "others"]  # as BibTeX leaves some out
        words = [*authors, *re.findall(r"[A-Za-z]{5,}", entry.partition("title ")[2].partition("\n")[0])]
        assert words, name
        for word in filter(language.word_filter, map(str.lower, words)):  # not "through" and the like
            found = [index[where].get(language.stem(word), []) for where in ("terms", "titleterms")]
            numbers = {each for one in found for each in (one if isinstance(one, list) else [one])}
            assert f"catalogue/{name}" in {index["docnames"][each] for each in numbers}, (name, word)


@pytest.mark.slow
def test_programs_find_a_list_of_all_pages(site: Path) -> None:
    listed = (site / "llms.txt").read_text(encoding="utf-8")
    assert listed.startswith("# structpe\n")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\.html\): \S", listed, re.MULTILINE)
    assert {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in PAGES} <= set(links)
    assert {f"catalogue/{name}" for name in MODELS} <= set(links)
    assert all((site / f"{link}.html").is_file() for link in links)
    assert "structpe.build(" in (site / "llms-full.txt").read_text(encoding="utf-8")


def program(name: str) -> ModuleType:
    """A program of docs/site, with its neighbours on the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs" / "site"))
        return importlib.import_module(name)


@pytest.mark.slow
def test_nothing_is_wrong_with_the_pages_in_a_browser(site: Path) -> None:
    look = program("look")
    if why := look.missing():
        pytest.skip(why)
    assert look.look(site, ("index", "get_started", "course/4_graphs", "adapters", "catalogue/t5", "search")) == []


def test_one_group_of_the_sidebar_is_open() -> None:
    caption = '<p class="caption" role="heading"><span class="caption-text">{}</span></p>\n<ul{}><li>page</li></ul>\n'
    tree = "".join(caption.format(*each) for each in (("Start", ""), ("Course", ' class="current"'), ("About", "")))
    folded = program("sidebar").folded(tree, "Start")
    assert re.findall(r"<details class=\"group\"( open)?><summary>(\w+)", folded) == [
        ("", "Start"),
        (" open", "Course"),
        ("", "About"),
    ]
    assert '<details class="group" open><summary>Start' in program("sidebar").folded(
        tree.replace("current", ""), "Start"
    )


def test_the_first_page_lists_every_page_in_one_of_five_groups() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r":caption: (\w[\w-]*)\n(?::glob:\n)?\n(.*?)^::::", text, re.MULTILINE | re.DOTALL)
    assert [caption for caption, _ in trees] == ["Start", "Course", "How-to", "Reference", "About"]
    entries = re.findall(r"^(?:.*<)?([\w/*-]+)>?$", "\n".join(pages for _, pages in trees), re.MULTILINE)
    names = [str(page.relative_to(ROOT / "docs").with_suffix("")) for page in [*PAGES, *MADE]]
    listed = [
        name
        for name in names
        for entry in entries
        if Path(name).match(entry) and Path(name).parts[:-1] == Path(entry).parts[:-1]
    ]
    assert sorted(listed) == sorted({*names} - {"index", "api_examples"})


def test_words_that_people_search_for_lead_to_pages_that_exist() -> None:
    words = program("words")
    scorer = (ROOT / "docs" / "_static" / "scorer.js").read_text(encoding="utf-8")
    answers = scorer.partition("const ANSWERS = {")[2].partition("};")[0]
    made = {f"catalogue/{name}" for name in MODELS} | {f"catalogue/encodings/{name}" for name in ENCODINGS}
    pages = {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in [*PAGES, *MADE]} | made
    assert {*words.PAGES, *re.findall(r'"([^"]+)"', answers)} <= pages
    assert "RoPE" in words.words("catalogue/yarn")
    assert "LapPE" in words.words("catalogue/encodings/laplacian")


def test_one_page_is_built_alone(tmp_path: Path) -> None:
    one = program("one")
    given, page = one.arguments(str(ROOT / "docs" / "install.md"))
    assert (page.name, "include_patterns=install.md" in given) == ("install.html", True)
    for wrong, why in (
        (tmp_path / "x.md", "is no page"),
        (ROOT / "docs" / "nothing.md", "there is no page nothing.md"),
    ):
        with pytest.raises(SystemExit, match=why):
            one.arguments(str(wrong))


COUNT = re.compile(r"(more than )?\b(\d{2,3}) (?:published )?(position models|encodings)\b")


def test_no_number_of_models_is_written_by_hand() -> None:
    """Pages count with ``{{ models }}``; what cannot be made says "more than", and not less than there are by fifty."""
    for page in [*PAGES, ROOT / "README.md", ROOT / "pyproject.toml", ROOT / "CITATION.cff"]:
        text = page.read_text(encoding="utf-8")
        for more, told, what in COUNT.findall(text):
            known = len(MODELS) if what == "position models" else len(ENCODINGS)
            if page.name.startswith("8_a_fair"):
                continue  # an exercise compares twenty
            assert more, f"{page.name} says {told} {what}: write {{{{ models }}}} or {{{{ encodings }}}}"
            assert int(told) <= known < int(told) + 50, page.name


def test_lists_of_names_elsewhere_are_left_out_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inventories = runpy.run_path(str(ROOT / "docs" / "site" / "inventories.py"))
    folder, nowhere = tmp_path / "lists", {"torch": "http://127.0.0.1:9/"}
    assert inventories["known"](folder, nowhere) == {}
    (tmp_path / "objects.inv").write_bytes(b"<html>sign in first</html>")
    assert inventories["known"](folder, {"torch": f"{tmp_path.as_uri()}/"}) == {}
    (tmp_path / "objects.inv").write_bytes(b"# Sphinx inventory version 2\n")
    site = f"{tmp_path.as_uri()}/"
    assert inventories["known"](folder, {"torch": site}) == {"torch": (site, str(folder / "torch.inv"))}
    (tmp_path / "objects.inv").unlink()
    assert inventories["known"](folder, {"torch": site}) != {}  # from the folder


def test_the_page_of_decisions_names_all() -> None:
    folder = ROOT / "docs" / "decisions"
    assert LINK.findall((folder / "README.md").read_text(encoding="utf-8")) == sorted(
        page.name for page in folder.glob("0*.md")
    )


def test_the_contribution_page_names_every_part() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    first = " ".join(re.findall(r"^\| (`[^|]+)\|", page, re.MULTILINE))
    assert set(re.findall(r"`(\w+)(?:\.py|/)`", first)) == {module.package for module in modules()} - {
        "",
        "__main__",
    } | {"references"}


def test_the_nodes_of_a_page_belong_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each page with a docstring in it holds all of Sphinx's environment, and building takes twice as long."""
    nodes, utils = pytest.importorskip("docutils.nodes"), pytest.importorskip("docutils.utils")
    monkeypatch.setattr(sys, "path", [*sys.path])
    conf = runpy.run_path(str(ROOT / "docs" / "conf.py"), init_globals={"tags": SimpleNamespace(has=lambda tag: False)})
    page, other = utils.new_document("page"), utils.new_document("a docstring")
    page += nodes.container("", nodes.paragraph("", "", nodes.Text("formula")))
    page[0][0].document = other
    conf["own_document"](None, page)
    assert {node.document for node in page.findall()} == {page}


@pytest.fixture(scope="module")
def api() -> ModuleType:
    """The program that writes the pages of the API."""
    return program("api")


def test_the_api_has_a_page_for_every_part_or_says_that_it_has_none(api: ModuleType) -> None:
    parts = {part.partition(".")[0] for part in api.PARTS} - {""}
    assert parts | api.INNER == {module.package for module in modules()} - {"", "__main__"}


def test_the_api_has_public_names_only_and_each_has_a_signature_and_an_example(api: ModuleType) -> None:
    pages = api.written(str)
    for part in api.PARTS:
        names = api.public(part)
        page = pages[api.title(part)]
        assert re.findall(r"^   \* - :ref:`(\w+) <", page, re.MULTILINE) == list(names)
        assert not [name for name in names if name.startswith("_")]
    assert "``(config, dims, *, fit=None)``" in pages["structpe"]
    assert api.without_example() == [], "write one into docs/api_examples.md"


def made(page: str) -> str:
    with redirect_stdout(io.StringIO()) as printed, pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs" / "site"))
        runpy.run_path(str(ROOT / "docs" / "site" / f"{page}.py"), run_name="__main__")
    return printed.getvalue()


def test_the_results_on_the_first_page_are_those_of_the_experiments() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "figures" / "results.py"))
    page = (ROOT / "docs" / "figures" / "results.html").read_text(encoding="utf-8")
    for panel in drawn["panels"]():
        assert "".join(drawn["drawn"](panel)) in page, "run: python docs/figures/results.py"
    told = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    error, _, bleu, trees = (panel.rows for panel in drawn["panels"]())
    means = [f"{fmean(of):.{digits}f}" for rows, digits in ((error, 3), (bleu, 1)) for of in rows.values()]
    lists = [f"{each:.1f}" for of in trees.values() for each in (min(of), max(of))]
    assert not [number for number in [*means, *lists] if number not in told]


def test_the_page_of_configurations_is_current() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert made("configuration") == written, "run: python docs/site/configuration.py > docs/configuration.md"


@pytest.mark.slow
def test_the_catalogue_has_a_row_for_each_position_model() -> None:
    rows = re.findall(r"^\| \[`([^`]+)`\]\(catalogue/([^)]+)\.md\) \|", made("catalogue_page"), re.MULTILINE)
    assert rows == [(name, name) for name in sorted(MODELS)]


def test_the_cheatsheet_has_each_model_in_one_family() -> None:
    sheet = runpy.run_path(str(ROOT / "docs" / "site" / "cheatsheet.py"), run_name="cheatsheet")
    families = sheet["families"]()
    assert sorted(name for names in families.values() for name in names) == sorted(MODELS)
    (row,) = (names for names in families.values() if "t5" in names)
    cells = list(sheet["cells"]("T5", [sheet["facts"](name) for name in row]))
    assert len(cells) == len(sheet["COLUMNS"])
    assert {"offset", "triple-offset"} <= set(cells[3].split(", "))
    assert {"sdpa", "small", "tables", "tiled"} <= set(cells[5].split(", "))
    assert (cells[7], cells[8]) == ("mask", "256 to 1,536")


def test_a_lesson_becomes_a_notebook_with_the_same_program_and_closed_answers() -> None:
    module = runpy.run_path(str(ROOT / "docs" / "site" / "notebooks.py"), run_name="notebooks")
    for lesson in sorted((ROOT / "docs" / "course").glob("*.md")):
        cells = json.loads(json.dumps(module["notebook"](lesson)))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert len({cell["id"] for cell in cells}) == len(cells)
        run_here = [
            block.text.rstrip("\n") for block in blocks(lesson) if block.language == "python" and not block.reason
        ]
        assert [cell["source"].removesuffix("\npicture") for cell in code] == run_here
        text = "".join(cell["source"] for cell in cells)
        assert "<details>" not in text
        assert "../figures/" not in text, "pictures must be in the notebook"
        answers = [cell for cell in code if cell["metadata"]]
        assert len(answers) >= lesson.read_text(encoding="utf-8").count("<details>") >= 2


def test_programs_in_pages_import_from_sixteen_places() -> None:
    """``from structpe import errors`` and ``structpe.errors`` are of the first place."""
    programs = {str(page): "\n".join(block.text for block in blocks(page)) for page in [*PAGES, ROOT / "README.md"]}
    for file in [*(ROOT / "examples").glob("*.py"), *(ROOT / "docs" / "gallery").rglob("*.py")]:
        programs[str(file)] = file.read_text(encoding="utf-8")
    found = {
        (module, where)
        for where, text in programs.items()
        for module in re.findall(r"^ *(?:from|import) structpe\.?([\w.]*)", text, re.MULTILINE)
    }
    assert not {(module, where) for module, where in found if module not in FACES}
    assert len({module for module, where in found}) > 10
