"""The server: every form, errors and limits, the token, metrics, and what a hostile client sends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from structpe.errors import ReadError
from structpe.serve.batches import QueueFull
from structpe.serve.metrics import ServerMetrics
from structpe.serve.served import ServedParses, ServedTexts, served
from tests.modules import ROOT
from tests.pictures.runs import predicted, written
from tests.together import together

pytest.importorskip("fastapi")

from starlette.testclient import TestClient

from structpe.serve.web import Limits, WebApp

RWSE = {"name": "rwse", "encoding": {"name": "random-walk", "steps": 6, "undirected": True}}
TOKEN = "a-token-of-many-letters"
TREE = {"tokens": ["She", "sings", "songs"], "heads": [2, 0, 2], "labels": ["nsubj", "root", "obj"]}
FACTS = {"facts": [["Ada", "born in", "London"]]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = tmp_path_factory.mktemp("texts"), tmp_path_factory.mktemp("graphs")
    return {"generate": written(made[0]), "predict": predicted(made[1], RWSE, outputs=1)}


@pytest.fixture(scope="module")
def sites(runs: dict[str, Path]) -> Iterator[dict[str, WebApp]]:
    made = {verb: WebApp(served(run, "cpu", 512, None), Limits(body=100_000, seconds=20)) for verb, run in runs.items()}
    yield made
    for site in made.values():
        site.batches.close()


@pytest.fixture
def site(sites: dict[str, WebApp]) -> WebApp:
    return sites["generate"]


def post(site: WebApp, items: Any, **headers: str) -> Any:
    return TestClient(site.app).post(f"/{site.served.verb}", json={"items": items}, headers=headers)


def raw(site: WebApp, body: bytes | Iterator[bytes], kind: str = "application/json") -> Any:
    return TestClient(site.app).post(f"/{site.served.verb}", content=body, headers={"Content-Type": kind})


def test_examples_run_as_the_page_has_them(sites: dict[str, WebApp]) -> None:
    assert set(sites["generate"].examples) == {"facts", "penman", "tree"}
    assert set(sites["predict"].examples) == {"edge_index"}, "the nodes of others have no features"
    for verb, site in sites.items():
        told = TestClient(site.app).get("/openapi.json").json()["paths"][f"/{verb}"]["post"]
        shown = told["requestBody"]["content"]["application/json"]["examples"]
        assert {form: each["value"]["items"] for form, each in shown.items()} == {
            form: [item] for form, item in site.examples.items()
        }
        for each in shown.values():
            answer = TestClient(site.app).post(f"/{verb}", json=each["value"])
            assert (answer.status_code, len(answer.json()["results"])) == (200, 1)


@together("given", [{"smiles": "CCO"}, {"words": "she sings"}, {"brackets": "(S (NP she) (VP sings))"},
                    {"python": "x = 1"}, {"structure": {"nodes": ["a", "b"], "edges": [[0, 1]]}},
                    {"penman": "(a / b :c (d / e))"}, FACTS, TREE, {"edge_index": [[0], [1]], "num_nodes": 2},
                    {"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2}]}])  # fmt: skip
def test_every_form_becomes_an_item(given: dict[str, Any], site: WebApp) -> None:
    item = site.served.item({**given, "id": "mine"}, 7)
    assert (item.id, item.structure.size > 1) == ("mine", True)


def all_to_the_first(doc: Any) -> Any:
    """A parse in which each word hangs on the first one."""
    for word in doc:
        word.head, word.dep_ = doc[0], "dep" if word.i else "ROOT"
    return doc


def test_a_sentence_is_parsed_by_the_parser_that_is_given(site: WebApp) -> None:
    spacy = pytest.importorskip("spacy")
    spacy.Language.component("all-to-the-first", func=all_to_the_first)
    nlp = spacy.blank("en")
    nlp.add_pipe("all-to-the-first", name="parser")
    run = ServedTexts(site.served.generator, 512, nlp)  # type: ignore[attr-defined]
    assert run.item({"sentence": "She sings"}, 1).structure.nodes == ("She", "sings")
    parses = ServedParses(6, nlp)
    items = [parses.item({"text": text}, number) for number, text in enumerate(("She sings", "Old songs"), 1)]
    both = parses.work(items)
    assert both == [parses.work([item])[0] for item in items]
    assert both[1] == {
        "id": "2",
        "sentences": [{"tokens": ["Old", "songs"], "heads": [0, 1], "labels": ["root", "dep"]}],
    }
    for wrong, why in ({"words": "a"}, "a 'text'"), ({"text": "a", "b": 1}, "it has b"), ({"text": "a " * 9}, "has 9"):
        with pytest.raises(ReadError, match=why):
            parses.item(wrong, 1)


def test_together_as_alone(sites: dict[str, WebApp]) -> None:
    """Threads ask at once; each gets what it would get alone."""
    texts = [{"facts": [[f"a{n}", "r", "b"], ["b", "s", f"c{m}"]][: 1 + m % 2]} for n in range(4) for m in range(2)]
    graphs = [
        {"edge_index": [[*range(n), *range(1, n + 1)], [*range(1, n + 1), *range(n)]], "num_nodes": n + 1,
         "x": [[k % 3] for k in range(n + 1)], "edge_attr": [[1]] * (2 * n)}
        for n in range(1, 9)
    ]  # fmt: skip
    for verb, items in (("generate", texts), ("predict", graphs)):
        site = sites[verb]
        alone = [post(site, [item]).json()["results"] for item in items]
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(partial(post, site), [[item] for item in items]))
        for each, answer in zip(alone, answers, strict=True):
            other = answer.json()["results"]
            if verb == "generate":
                assert other == each
            else:
                assert other[0]["prediction"] == pytest.approx(each[0]["prediction"], abs=1e-5)


@together(
    "body, status, told",
    [
        (b"{", 400, "the body is not JSON in UTF-8 (Input data was truncated); correct it"),
        (b"\xff", 400, "is not JSON"),
        (b'{"items": [NaN]}', 400, "is not JSON"),
        (b'{"items": [1e999]}', 400, "out of range"),
        (b'{"items": [1' + b"0" * 5000 + b"]}", 400, "out of range"),
        (b'{"items": [{"words": "\\ud800"}]}', 400, "is not JSON"),
        (b"[" * 90_000, 400, "too many lists and objects within one another"),
        (b"[1]", 422, "the body has: list; give {'items': [...]}"),
        (b'{"items": [], "beam": 3}', 422, "the body has: items, beam"),
        (b'{"items": []}', 422, "the request has 0 items; give 1 to 64"),
        (b'{"items": [' + b"{}," * 9_999 + b"{}]}", 422, "the request has 10000 items; give 1 to 64"),
        (b'{"items": [3]}', 422, "item 1: it is 3; give an object"),
        (b'{"items": [{"words": 3}]}', 422, "item 1: 'words' is 3; give a text"),
        (b'{"items": [{"words": "a", "smiles": "C"}]}', 422, "item 1: it has smiles and words, which are two"),
        (b'{"items": [{"sentence": "a"}]}', 422, "item 1: the server has no parser; start it with --parser"),
        (b'{"items": [{"nodes": [{"id": [[1]]}]}]}', 422, "item 1: the id ([1],) is not a text or number"),
        (b'{"items": [{"structure": ' + b"[" * 900 + b"]" * 900 + b"}]}", 422, "item 1: a list is taken as triples"),
        (b'{"items": [{"structure": {"nodes": 1000000000}}]}', 422, "item 1: 'nodes' is 1000000000; give the list"),
        (b'{"items": [{"edge_index": [[0], [1]], "num_nodes": 1000000000}]}', 422, "has 1,000,000,000 nodes or units"),
        (b'{"items": [{"edge_index": [[0], [1]], "num_nodes": "1000000000"}]}', 422, "give a whole number"),
        (b'{"items": [{"structure": {"edge_index": [[0], [1]], "num_nodes": 1e9}}]}', 422, "give a whole number"),
        (
            b'{"items": [{"words": "' + b"a " * 600 + b'"}]}',
            422,
            "has 600 nodes or units; give a part of it with 512 at most",
        ),
        (b'{"items": [{"penman": "' + b"(a / b :c " * 5_000 + b'"}]}', 422, "item 1: line 1: the graph is not closed"),
        (b'{"items": [{"brackets": "' + b"(a " * 30_000 + b'"}]}', 422, "item 1: 30000 parentheses are not closed"),
        (b'{"items": [{"python": "' + b"(" * 5_000 + b'"}]}', 422, "item 1: the text is not Python"),
        (b'{"items": [{"smiles": "' + b"C(" * 4_000 + b'"}]}', 422, "has 4000 atoms"),
        (b'{"items": [{"facts": [["a", "b"]]}]}', 422, "item 1: triple 1 is ('a', 'b'); give three"),
        (b'{"items": [{"tokens": ["a"], "heads": [1]}]}', 422, "item 1: "),
        (b" " * 100_001, 413, "the body is larger than 100,000 bytes; send fewer items"),
    ],
)
def test_what_is_wrong_is_said(body: bytes, status: int, told: str, site: WebApp) -> None:
    answer = raw(site, body)
    assert answer.status_code == status
    assert told in answer.json()["error"]
    assert ("item" in answer.json()) == answer.json()["error"].startswith("item ")


def test_an_error_of_the_model_names_the_item(sites: dict[str, WebApp]) -> None:
    good = FACTS, sites["predict"].examples["edge_index"]
    for site, right, wrong, told in (
        (
            sites["generate"],
            good[0],
            {"smiles": "CCO"},
            "item 2: encoding 'offset': the structure has no reading",
        ),
        (sites["predict"], good[1], {"smiles": "CCO"}, "item 2: the model reads 1 numbers of each of the nodes, and"),
    ):
        answer = post(site, [right, wrong])
        assert (answer.status_code, answer.json()["item"]) == (422, 2)
        assert answer.json()["error"].startswith(told)


def test_a_body_without_an_end(site: WebApp) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(1000):
            yield b" " * 50_000

    assert raw(site, b"{}", kind="text/plain").status_code == 415
    answer = raw(site, endless())
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")


class Slow:
    """A run that takes its time."""

    verb = "generate"

    def __init__(self) -> None:
        self.go, self.begun = threading.Event(), threading.Event()

    def examples(self) -> dict[str, Any]:
        return {"words": {"words": "a"}}

    def item(self, given: Any, number: int) -> Any:
        return given

    def work(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        self.begun.set()
        if items[0] == "fails":
            raise ZeroDivisionError("by zero")
        assert self.go.wait(20)
        return [{"id": each} for each in items]


def test_too_late_too_many_and_a_bug(capsys: pytest.CaptureFixture[str]) -> None:
    run: Any = Slow()
    site = WebApp(run, Limits(seconds=0.3, queue=2, wait=0.0))
    assert post(site, ["fails"]).status_code == 500
    assert "ZeroDivisionError" in capsys.readouterr().err
    late = post(site, ["a"])
    assert (late.status_code, late.json()["error"][:37]) == (504, "there is no answer within 0.3 s; send")
    waiting = site.batches.submit(["b", "c"])
    full = post(site, ["d"])
    assert (full.status_code, full.headers["retry-after"]) == (503, "1")
    assert full.json()["error"] == "2 items wait, and 2 may; ask again later"
    run.go.set()
    assert waiting.result(10) == [{"id": "b"}, {"id": "c"}]
    client = TestClient(site.app)
    assert client.get("/health").json()["status"] == "ok"
    site.batches.close()
    assert (client.get("/health").status_code, post(site, ["e"]).status_code) == (503, 503)
    with pytest.raises(QueueFull):
        site.batches.submit(["f"])
    text = client.get("/metrics").text
    assert {'structpe_requests_total{code="500"} 1', 'structpe_requests_total{code="503"} 2',
            'structpe_requests_total{code="504"} 1', "structpe_errors_total 4"} <= set(text.splitlines())  # fmt: skip


def test_the_token() -> None:
    run: Any = Slow()
    run.go.set()
    site = WebApp(run, Limits(), TOKEN)
    for header in ({}, {"Authorization": TOKEN}, {"Authorization": f"Basic {TOKEN}"}, {"Authorization": "Bearer é"}):
        sent = {name: value.encode() for name, value in header.items()}
        answer = TestClient(site.app).post("/generate", json={"items": ["a"]}, headers=sent)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "send it as 'Authorization: Bearer TOKEN'" in answer.json()["error"]
    assert post(site, ["a"], Authorization=f"Bearer {TOKEN}").json() == {"results": [{"id": "a"}]}
    client = TestClient(site.app)
    assert (client.get("/metrics").status_code, client.get("/health").status_code) == (401, 200)
    assert client.get("/openapi.json").json()["paths"]["/generate"]["post"]["security"] == [{"bearer": []}]
    site.batches.close()


def test_names_of_other_sites_are_refused() -> None:
    site = WebApp(Slow(), hosts=("127.0.0.1", "localhost"))  # type: ignore[arg-type]
    assert TestClient(site.app, base_url="http://evil.example").get("/health").status_code == 400
    page = TestClient(site.app, base_url="http://localhost:8000").get("/")
    assert page.status_code == 200
    assert "sha256-" in page.headers["content-security-policy"]
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page.text), "nothing is loaded from elsewhere"
    site.batches.close()


def test_histograms_count_up() -> None:
    metrics = ServerMetrics()
    for size in (1, 2, 3, 1000):
        metrics.batch(size)
    metrics.request(200, 0.02)
    lines = metrics.text(5).splitlines()
    assert [line.split()[-1] for line in lines if "batch_items_bucket" in line] == ["1", "2", "3", *["3"] * 5, "4"]
    assert {"structpe_batch_items_sum 1006", "structpe_queue_items 5", "structpe_request_seconds_count 1"} <= {*lines}
    for line in lines:
        assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]+"\})? [0-9.e+-]+', line)


@pytest.mark.slow
def test_a_signal_ends_the_server_after_it_has_answered(runs: dict[str, Path]) -> None:
    words = [sys.executable, "-m", "structpe", "serve", str(runs["predict"]), "--port", "0", "--wait", "1"]
    edge_index = {"edge_index": [[0, 1], [1, 0]], "num_nodes": 2, "x": [[0], [0]], "edge_attr": [[1], [1]]}
    for number in (signal.SIGTERM, signal.SIGINT):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        found: list[Any] = []

        def ask(address: str = address, found: list[Any] = found) -> None:
            body = json.dumps({"items": [edge_index]}).encode()
            sent = urllib.request.Request(f"{address}predict", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(sent, timeout=30) as answer:
                found.append(json.load(answer))

        with urllib.request.urlopen(f"{address}health", timeout=60) as answer:
            assert json.load(answer)["does"] == "predict"
        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(0.5)  # it waits for others, for a second
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        thread.join()
        assert (process.returncode, err) == (0, "")
        assert out.endswith("The server has ended; what it had taken is answered.\n")
        assert [each["id"] for each in found[0]["results"]] == ["1"]
