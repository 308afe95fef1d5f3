"""The app: what it shows, what it says of wrong input, and that it works in a browser."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlencode

import numpy as np
import pytest

from structpe import Dims, path
from structpe.encodings import UndirectedDistance
from structpe.errors import ConfigError, StructPEError
from structpe.pictures import begin
from structpe.pictures.compare import SHIFT, changes, shifted
from structpe.pictures.given import FORMS, LETTERS, item_of_text
from structpe.pictures.head_patterns import of_encoder
from structpe.pictures.scene import FIRST, Choices, scene
from tests.pictures.cases import FORMS as DRAWN
from tests.pictures.cases import PARSE
from tests.pictures.runs import predicted, written
from tests.tasks.graph_to_text.tiny import AMR
from tests.together import together

BROWSER = Path("/usr/bin/chromium")
DIMS = Dims(48, 2, 2)
PENMAN = "(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))"


def test_the_first_view_has_all_parts() -> None:
    shown = scene(FIRST)
    assert shown.title == "sentence: 7 nodes, 6 edges"
    assert "lit nsubj keeper" in shown.says
    assert [part.title for part in shown.maps] == ["depth", "undirected-distance"]
    a, b = shown.sides
    assert (a.name, b.name) == (FIRST.a, FIRST.b)
    assert not any(part.why for side in shown.sides for part in (*side.parts, *side.changed))
    assert [part.number for part in b.changed] == ["0.0 %", "0.0 %"], "distances in a tree know nothing of both"
    assert float(a.changed[0].number.removesuffix(" %")) > 1, "sinusoids of places change with the place"


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_text_is_read(form: str) -> None:
    item = item_of_text(form, FORMS[form].sample, FORMS[form].heads)
    assert 3 < item.structure.size < 20


@together(
    "form, text, heads, message",
    [
        ("words", "  ", "", "the text is empty; give words in their order"),
        ("words", "a " * LETTERS, "", f"the text has {2 * LETTERS:,} letters, and the app takes {LETTERS:,}; paste"),
        ("words", "a " * 200, "", "the structure has 200 nodes or units, and the app shows 150; take a part of it"),
        ("sentence", "she sings", "2 O", "'O' is not a head; give the number of a word, or one with a relation"),
        ("sentence", "she sings", "2", "1 heads for 2 tokens; give one per token"),
        ("penman", "(w / want-01", "", "the text: "),
        ("penman", f"{PENMAN}\n\n{PENMAN}", "", "the text has no item, or more than one; give one sentence, graph"),
        ("triples", "a | b", "", "the text: item 1: line 1: 'a\\tb' is not a triple"),
        ("smiles", "C(", "", "the text: "),
        ("verse", "a", "", "there is no form 'verse' of texts; choose one of sentence, words"),
    ],
)
def test_wrong_texts_are_explained(form: str, text: str, heads: str, message: str) -> None:
    with pytest.raises(StructPEError) as told:
        item_of_text(form, text, heads)
    assert message in str(told.value)


def test_a_missing_parser_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    spacy = pytest.importorskip("spacy")
    monkeypatch.setattr(spacy.util, "is_package", lambda name: False)
    with pytest.raises(StructPEError, match=r"is not installed.*; or type the head of each word, or choose 'words in"):
        item_of_text("sentence", "she sings")


@together(
    "change, message",
    [
        ({"a": "sinusoidl"}, "Did you mean 'sinusoidal'"),
        ({"first": "dept"}, "Did you mean 'depth'"),
        ({"b": "{name: t5, encoding"}, "the position model"),
        ({"heads": "9"}, "heads is '9'; give a number from 1 to 8"),
        ({"layers": "two"}, "layers is 'two'; give a number from 1 to 4"),
        ({"quantity": "colour"}, "the quantity is 'colour'; give one of both, bias, scores, attention"),
        ({"form": "file"}, "no file is named; give its path"),
        ({"form": "run"}, "no trained run is named; give its folder"),
        ({"run": "nowhere"}, "nowhere holds no config.yaml; give the folder of a run"),
    ],
)
def test_wrong_choices_are_explained(change: dict[str, str], message: str) -> None:
    with pytest.raises(StructPEError) as told:
        scene(replace(FIRST, **change))
    assert message in str(told.value)


def test_what_does_not_fit_has_a_message_in_its_place() -> None:
    shown = scene(Choices("smiles", FORMS["smiles"].sample, first="depth", second="", a="sinusoidal", b="rwse"))
    assert "the structure has no root" in shown.maps[0].why
    assert "the structure has no reading order" in shown.sides[0].why
    assert shown.sides[1].parts[0].pictures
    assert shown.sides[1].changed[0].why == "it has no reading order, so nothing can come before its nodes"


def test_choices_and_addresses() -> None:
    given = Choices("triples", "a | b | c\n", first="{name: random-walk, steps: 8}", b="", heads="2")
    assert Choices.of(dict(parse_qsl(given.query, keep_blank_values=True))) == replace(given, parse=FIRST.parse)
    assert FIRST.query == "form=sentence"
    with pytest.raises(ConfigError, match="the address has a field 'colour'; the fields are a, b, file"):
        Choices.of({"colour": "red"})


@pytest.mark.parametrize("name", ["sequence", "tree", "hierarchy", "molecule"])
def test_a_shift_keeps_what_a_structure_has(name: str) -> None:
    structure = DRAWN[name]
    if structure.order is None:
        with pytest.raises(StructPEError, match="it has no reading order"):
            shifted(structure)
        return
    later = shifted(structure)
    assert later.nodes[SHIFT:] == structure.nodes
    assert later.order is not None
    np.testing.assert_array_equal(later.order[SHIFT:], structure.order + SHIFT)
    ways = [UndirectedDistance().one(each).pairs() for each in (structure, later)]
    np.testing.assert_array_equal(ways[0], ways[1][SHIFT:, SHIFT:])


def test_attention_that_moves_is_as_a_naive_loop_says() -> None:
    model = begin("sinusoidal", DIMS, lambda: [PARSE])
    before, after = (of_encoder(each, model.position).attention.numpy() for each in (PARSE, shifted(PARSE)))
    n, moved = PARSE.size, []
    for layer in range(2):
        for head in range(2):
            for query in range(n):
                row = [after[layer, head, query + SHIFT, key + SHIFT] for key in range(n)]
                pairs = zip(row, before[layer, head, query], strict=True)
                moved.append(sum(abs(new / sum(row) - old) for new, old in pairs) / 2)
    found = list(changes(PARSE, model))
    assert found[0].moved == pytest.approx(np.mean(moved), abs=1e-12)
    assert found[1].moved == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("name", "shift"), [("alibi", False), ("rotary", False), ("learned", True)])
def test_what_a_shift_changes(name: str, shift: bool) -> None:
    before, renumbered = changes(path(["a", "b", "c", "d", "e"]), begin(name, DIMS, list))
    assert (before.moved > 1e-6) == shift
    assert renumbered.moved < 1e-9


@pytest.mark.slow
def test_a_run_that_writes(tmp_path: Path) -> None:
    run = str(written(tmp_path))
    shown = scene(Choices("file", file=str(AMR / "test.txt"), reader="amr", index="2", run=run, a="", b=""))
    assert shown.run is not None
    assert shown.run.text is not None
    assert shown.run.references
    assert any("reads the source" in line for line in shown.run.kernels)
    assert any(part.title.startswith("attention; units of their own content") for part in shown.of_run)
    pasted = scene(Choices("penman", PENMAN, run=run, first="", second="", a="", b=""))
    assert pasted.run is not None
    assert pasted.run.references == ()


@pytest.mark.slow
def test_a_run_that_predicts(tmp_path: Path) -> None:
    run = str(predicted(tmp_path, "rwse", outputs=1))
    shown = scene(Choices("run", run=run, index="1", first="", second="", a="", b="")).run
    assert shown is not None
    assert shown.text is None
    assert shown.rows
    assert shown.views[1].word == "attention"
    with pytest.raises(StructPEError, match=r"items, 0\.\.\d+; 999 is out of range; or paste a structure"):
        scene(Choices("run", run=run, index="999"))


# --- the server ---


@contextmanager
def served(start: Choices = FIRST) -> Iterator[str]:
    """The address of an app, which another thread serves."""
    uvicorn = pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    from structpe.cli.app import configured

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(configured(start, "127.0.0.1"))
        server.install_signal_handlers = lambda: None
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as found:
        yield found


def asked(address: str, data: bytes | None = None, **headers: str) -> tuple[int, str]:
    """Status and text of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data, headers)) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_answers_without_a_browser(address: str) -> None:
    assert asked(address + "?colour=red")[0] == 422
    assert asked(address, Host="example.org")[0] == 400, "no other name leads here"
    assert asked(address, **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"})[0] == 403
    status, text = asked(address + "?" + urlencode({"form": "words", "text": "山" * LETTERS, "a": "", "b": ""}))
    assert status == 200, "the longest text fits into an address"
    status, told = asked(address, data=b"text=" + b"a" * 5_000_000)
    assert status == 422
    assert "the input is larger than 262,144 bytes; paste up to 4,000 letters" in told
    assert "http:" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https:" not in text


# --- the browser ---


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if not BROWSER.exists():
        pytest.skip(f"needs a browser: {BROWSER}")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=str(BROWSER), args=["--no-sandbox"])
        yield found
        found.close()


@contextmanager
def opened(browser: Any, address: str, **options: Any) -> Iterator[Any]:
    """A page of the app, which must cause no error."""
    context = browser.new_context(**options)
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" and "422" not in said.text else 0)
    page.on("request", lambda each: wrong.append(each.url) if not each.url.startswith((address, "data:")) else None)
    page.goto(address)
    yield page
    assert not wrong
    context.close()


def shown(page: Any) -> str:
    """Wait for the answer to a change; the message, or the heading of the view."""
    page.wait_for_selector("#view:not([aria-busy])")
    return str(page.locator("#message").text_content() or page.locator("#view h2").first.text_content())


@pytest.mark.slow
def test_the_first_view_in_a_browser(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        assert shown(page) == "sentence: 7 nodes, 6 edges"
        assert page.locator("#view svg.map").count() > 10
        page.fill("#a", "rotry")
        page.click("button[type=submit]")
        assert "Did you mean 'rotary'" in shown(page)
        assert page.locator("#view h2").first.text_content() == "sentence: 7 nodes, 6 edges", "the last view is kept"
        page.fill("#a", "rotary")
        page.fill("#text", "a " * 300_000)
        page.click("button[type=submit]")
        assert shown(page) == "the text has 600000 letters, and the app takes 4000; paste a part of it"
        page.fill("#text", FIRST.text)
        page.click("button[type=submit]")
        assert shown(page) == "sentence: 7 nodes, 6 edges"
        assert page.locator("#side-A").text_content() == "A: rotary"
        view = page.locator("#view").inner_html()
        page.goto(page.url)
        assert page.locator("#view").inner_html().split() == view.split(), "an address brings the same view back"
        assert page.input_value("#a") == "rotary"


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_pasted(browser: Any, address: str, form: str) -> None:
    with opened(browser, address) as page:
        page.select_option("#form", form)
        assert page.input_value("#text").strip() == FORMS[form].sample.strip(), "a sample is filled in"
        page.fill("#text", FORMS[form].sample)
        for model in ("#a", "#b"):
            page.fill(model, "{name: t5, encoding: undirected-distance}")
        page.click("button[type=submit]")
        assert "nodes" in shown(page)
        assert f"form={form}" in page.url
        assert page.locator("#view h3").count() == 2
        assert "%" in str(page.locator("#view figcaption strong").last.text_content())


@pytest.mark.slow
def test_it_works_by_keyboard(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the view"
        reached = []
        while "text" not in reached:
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", "the focus is visible"
        assert reached == ["A", "A", "A", "A", "form", "text"]
        while page.evaluate("document.activeElement.id") != "a":
            page.keyboard.press("Tab")
        page.keyboard.press("Control+a")
        page.keyboard.type("alibi")
        page.keyboard.press("Enter")
        shown(page)
        assert page.locator("#side-A").text_content() == "A: alibi"
        while not page.evaluate("document.activeElement.matches('svg.map')"):
            page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        assert "depth: unit 1 keeper, number 1: 1" in str(page.locator("#cell").text_content())
        assert page.locator("#view rect.frame").count() > 4, "the row is framed in every map"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_a_checker_of_accessibility_finds_nothing_serious(browser: Any, address: str, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    with opened(browser, address, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for wrong in ("", "rotry"):
            if wrong:
                page.fill("#a", wrong)
                page.click("button[type=submit]")
                shown(page)
            found = axe.Axe().run(page).response["violations"]
            told = [(each["id"], [node["html"][:80] for node in each["nodes"]]) for each in found]
            assert not told


@pytest.mark.slow
def test_it_works_without_a_script(browser: Any, address: str) -> None:
    with opened(browser, address, java_script_enabled=False) as page:
        page.fill("#a", "rotry")
        page.click("button[type=submit]")
        assert "Did you mean 'rotary'" in str(page.locator("#message").text_content())
        assert page.locator("#view h2").first.text_content() == "sentence: 7 nodes, 6 edges"
        page.fill("#a", "rotary")
        page.click("button[type=submit]")
        assert page.locator("#side-A").text_content() == "A: rotary"
        assert "a=rotary" in page.url


@pytest.mark.slow
def test_a_run_in_a_browser(browser: Any, tmp_path: Path) -> None:
    run = written(tmp_path)
    with served(Choices("penman", PENMAN, run=str(run))) as address, opened(browser, address) as page:
        assert "What the run has learned" in str(page.locator("#view").text_content())
        assert page.locator("dt").first.text_content() == "It writes"
        page.fill("#run", "")
        page.keyboard.press("Enter")
        shown(page)
        assert "What the run has learned" not in str(page.locator("#view").text_content())


@pytest.mark.slow
def test_examples_of_the_page_are_without_error() -> None:
    from structpe.pictures.app import EXAMPLES

    for title, choices in EXAMPLES.items():
        sides = scene(choices).sides
        assert not any(side.why for side in sides), title
