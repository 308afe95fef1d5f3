"""Training of parsers: whole or absent, goes on after an interruption, says what is wrong."""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx as nx
import numpy as np
import pytest
import spacy

import structpe
from structpe.errors import StoreError, StructPEError
from structpe.formats import Item, read
from structpe.parsing import Plan, Progress, evaluate, load_parser, parse, train
from structpe.parsing.formats import as_conllu
from structpe.parsing.gold import gold_items
from structpe.parsing.models import ParsingError
from structpe.parsing.training import _config, _prepare, _write, as_doc, documents
from structpe.system import files
from tests.datasets import corpus
from tests.foreign import FOREIGN, FOREIGN_IDS, contents
from tests.parsing.conftest import PLAN, SAMPLE
from tests.parsing.validating import UPOS, complaints
from tests.representatives import only

pytestmark = pytest.mark.early


@pytest.fixture(autouse=True)
def _hears_ctrl_c() -> Iterator[None]:
    """Also where tests run in the background of a shell, which lets Ctrl-C be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_trained_parser_has_learned_something(parser: Path) -> None:
    scores = evaluate([SAMPLE], load_parser(parser))
    assert (scores.sentences, scores.words) == (40, 319)
    assert 10 < scores.las <= scores.uas <= 100  # after 20 steps already 19.7 on one processor, above 20 on another
    assert scores.spacy_words == 100
    assert scores.upos is not None
    assert scores.upos > 50
    assert scores.xpos is scores.spacy_xpos is None


@pytest.mark.slow
def test_a_trained_parser_names_no_path_of_its_maker(parser: Path) -> None:
    assert not list(parser.parent.glob("*.part"))
    config = (parser / "config.cfg").read_text()
    assert str(parser.parent) not in config
    assert spacy.load(parser).pipe_names == ["tok2vec", "morphologizer", "parser"]


def marked(upos: Callable[[int], bool], xpos: Callable[[int], bool]) -> str:
    """The sample, with universal tags on some lines, and tags of its own, ``x-...``, on some; by number of the line."""
    lines = []
    for number, line in enumerate(SAMPLE.read_text(encoding="utf-8").split("\n")):
        cells = line.split("\t")
        if cells[0].isdigit():
            cells[4] = f"x-{cells[3].lower()}" if xpos(number) else "_"
            cells[3] = cells[3] if upos(number) else "_"
        lines.append("\t".join(cells))
    return "\n".join(lines)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A treebank with XPOS on every other word and UPOS on two of three, and a parser of it."""
    folder = tmp_path_factory.mktemp("mixed")
    file = folder / "mixed.conllu"
    file.write_text(marked(lambda line: line % 3 > 0, lambda line: line % 2 > 0), encoding="utf-8")
    return file, train(Plan((str(file),), (str(SAMPLE),), steps=20, language="en"), folder / "parser")


def rows_of(file: Path) -> list[list[list[str]]]:
    """The fields of each word of each sentence."""
    blocks = file.read_text(encoding="utf-8").strip().split("\n\n")
    rows = [[line.split("\t") for line in block.split("\n")] for block in blocks]
    return [[row for row in block if row[0].isdigit()] for block in rows]


@pytest.mark.slow
def test_scores_are_those_of_counting_by_hand(mixed: tuple[Path, Path]) -> None:
    """Of the fields of the file, and of what spaCy says of its words."""
    file, folder = mixed
    nlp = spacy.load(folder)
    right, of = Counter[str](), Counter[str]()
    for rows in rows_of(file):
        spaces = [bool(word.whitespace_) for word in as_doc(read_conllu(rows), nlp.vocab)]
        given = spacy.tokens.Doc(nlp.vocab, [row[1] for row in rows], spaces)
        for word in given:
            word.is_sent_start = word.i == 0
        for row, word in zip(rows, nlp(given), strict=True):
            head = 0 if word.head.i == word.i else word.head.i + 1
            relation = "root" if word.dep_ == "ROOT" else word.dep_
            cells = {"uas": (int(row[6]), head), "las": ((int(row[6]), row[7]), (head, relation))}
            cells |= {
                name: pair
                for name, pair in (("upos", (row[3], word.pos_)), ("xpos", (row[4], word.tag_)))
                if pair[0] != "_"
            }
            of.update(cells.keys())
            right.update(name for name, (mine, its) in cells.items() if mine == its)
    found = evaluate([file], load_parser(folder))
    for name in ("las", "uas", "upos", "xpos"):
        assert getattr(found, name) == pytest.approx(100 * right[name] / of[name]), name
        assert 0 < getattr(found, name) < 100, name
    # Words are found and punctuation has tags, so running text differs only by what is predicted across sentences.
    assert found.spacy_upos == pytest.approx(found.upos, abs=15)
    assert found.spacy_xpos == pytest.approx(found.xpos, abs=15)


def read_conllu(rows: list[list[str]]) -> Item:
    return read_text("\n".join("\t".join(row) for row in rows) + "\n\n")


def read_text(text: str) -> Item:
    """The one sentence of a text."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "a.conllu"
        file.write_text(text, encoding="utf-8")
        return read(file)[0]


@pytest.mark.slow
def test_each_tagger_learns_its_own_tags(mixed: tuple[Path, Path]) -> None:
    file, folder = mixed
    nlp = load_parser(folder)
    assert nlp.pipe_names == ["tok2vec", "morphologizer", "tagger", "parser"]
    had = [word for rows in rows_of(file) for word in rows]
    assert set(nlp.get_pipe("tagger").labels) == {row[4] for row in had} - {"_"}
    said = set(nlp.get_pipe("morphologizer").cfg["labels_pos"].values())
    assert {spacy.parts_of_speech.NAMES[each] for each in said} == {row[3] for row in had} - {"_"}
    doc = nlp("The keeper lit the lamp.")
    assert {word.pos_ for word in doc} <= UPOS
    assert all(word.tag_.startswith("x-") for word in doc)


@pytest.mark.parametrize(
    ("upos", "xpos", "pipeline"),
    [
        (True, True, ["tok2vec", "morphologizer", "tagger", "parser"]),
        (False, True, ["tok2vec", "tagger", "parser"]),
        (False, False, ["tok2vec", "parser"]),
    ],
)
def test_tags_that_the_trees_lack_are_not_learned(tmp_path: Path, upos: bool, xpos: bool, pipeline: list[str]) -> None:
    """Whether one word has a tag decides; the last one here."""
    file = tmp_path / "a.conllu"
    last = SAMPLE.read_text(encoding="utf-8").rstrip("\n").count("\n")
    file.write_text(marked(lambda line: upos and line == last, lambda line: xpos and line == last), encoding="utf-8")
    plan, part, work = Plan((str(file),)), tmp_path / "part", tmp_path / "work"
    work.mkdir()
    config = _config(plan, part, 0, _prepare(plan, part, work)[1])
    assert config["nlp"]["pipeline"] == [*config["components"]] == pipeline


@pytest.mark.slow
def test_a_parser_without_taggers_learns_and_is_scored(tmp_path: Path) -> None:
    file = tmp_path / "a.conllu"
    file.write_text(marked(lambda line: False, lambda line: False), encoding="utf-8")
    nlp = load_parser(train(Plan((str(file),), steps=1, language="en"), tmp_path / "parser"))
    assert complaints("".join(as_conllu(parse("The keeper slept. Mira lit the lamp.", nlp))), untagged=True) == []
    scores = evaluate([SAMPLE], nlp)
    assert scores.upos is scores.xpos is scores.spacy_upos is scores.spacy_xpos is None


def test_a_tag_that_is_none_of_universal_dependencies_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.conllu"
    file.write_text(SAMPLE.read_text(encoding="utf-8").replace("\tPROPN\t", "\tNNP\t"), encoding="utf-8")
    for act in (lambda: train(Plan((str(file),)), tmp_path / "out"), lambda: evaluate([file], spacy.blank("en"))):
        with pytest.raises(
            StructPEError,
            match=r"a\.conllu:island-\d+: the tag 'NNP' in UPOS is none of Universal Dep.*, ADP.*write _",
        ):
            act()


@pytest.mark.slow
def test_what_a_parser_says_is_conllu_that_universal_dependencies_accept(mixed: tuple[Path, Path]) -> None:
    text = "The keeper  lit\nthe lamp.\n\nI don't know!It cannot be (or can it?). Tobin, waved\u00a0."
    assert complaints("".join(as_conllu(parse(text, mixed[1])))) == []


def test_the_validator_of_these_tests_sees_what_is_wrong() -> None:
    text = SAMPLE.read_text(encoding="utf-8")
    assert complaints(text) == []
    for old, new in (
        ("\tPROPN\t", "\tNNP\t"),
        ("\tVERB\t", "\t_\t"),
        ("\t0\troot\t", "\t0\tROOT\t"),
        ("\t0\troot\t", "\t1\troot\t"),
        ("\t2\tnsubj\t", "\t0\troot\t"),
        ("SpaceAfter=No", "_"),
        ("\n2\t", "\n3\t"),
        ("\n\n#", "\n\n\n#"),
        ("island-2\n", "island-1\n"),
    ):
        assert complaints(text.replace(old, new, 1)), (old, new)


class Stop(Exception):
    pass


@pytest.mark.slow
def test_an_interrupted_training_goes_on(tmp_path: Path) -> None:
    told: list[Progress] = []

    def stop(progress: Progress) -> None:
        told.append(progress)
        if progress.step == 3:
            raise Stop

    plan = Plan((str(SAMPLE),), (str(SAMPLE),), steps=5, language="en")
    out, part = tmp_path / "parser", tmp_path / "parser.part"
    with pytest.raises(Stop):
        train(plan, out, stop)
    assert not out.exists()
    assert json.loads((part / "state.json").read_text())["step"] == 0  # scored at the beginning and the end
    with pytest.raises(
        StructPEError, match=r"parser.part: a training with other files or options was interrupted here; give"
    ):
        train(replace(plan, seed=1), out)
    (part / "state.json").write_text(json.dumps({"step": 2, "best": 2.0}))  # as if it had been scored then
    went_on: list[Progress] = []
    assert train(plan, out, went_on.append) == out
    assert [progress.step for progress in went_on] == [2, 3, 4, 5]
    assert went_on[-1].scores is not None
    assert not part.exists()
    assert load_parser(out)
    with pytest.raises(StructPEError, match=r"parser: the folder exists; remove it, or choose another"):
        train(plan, out)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_parser(tmp_path: Path) -> None:
    plan = replace(PLAN, steps=3)
    for name in ("one", "two"):
        train(plan, tmp_path / name)
    assert (tmp_path / "one/parser/model").read_bytes() == (tmp_path / "two/parser/model").read_bytes()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"files": ()}, r"^nothing to train on is given; give a file in CoNLL-U at least, or sentences$"),
        ({"files": ("x",), "steps": 0}, r"^steps are 0; give 1 or more$"),
        ({"files": ("x",), "seed": -1}, r"^the seed is -1; give 0\.\.4294967295$"),
        ({"files": ("nowhere.conllu",)}, r"^nowhere.conllu: there is no such file or folder; check the path$"),
        (
            {"files": (str(SAMPLE),), "language": "qq"},
            r"^spaCy has no tokenizer for the language 'qq': .* Give another code, or",
        ),
    ],
)
def test_bad_plans_are_refused(tmp_path: Path, plan: dict[str, object], message: str) -> None:
    with pytest.raises(StructPEError, match=message):
        train(Plan(**plan), tmp_path / "out")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_sentences_from_python_are_those_of_their_file() -> None:
    """Mappings, graphs of networkx, documents of spaCy and items; the docs of spaCy are equal, to the byte."""
    items = read(SAMPLE).items[:12]
    nlp = spacy.blank("en")
    docs = [as_doc(item, nlp.vocab) for item in gold_items(items)]
    mappings = []
    for item in items:
        heads = (item.structure.parents() + 1).tolist()
        labels = ["root"] * item.structure.size
        for edge, child in enumerate(item.structure.edges[:, 1].tolist()):
            labels[child] = item.structure.relations[edge]
        tokens, tags = list(item.structure.nodes), {"upos": list(item.metadata["upos"]), "xpos": None}
        mappings.append({"tokens": tokens, "heads": heads, "labels": labels, "text": item.metadata["text"], **tags})
    graphs = [structpe.convert(item.structure, "networkx") for item in items]
    of_graphs = [
        {"structure": g, **{k: i.metadata[k] for k in ("upos", "text")}} for g, i in zip(graphs, items, strict=True)
    ]
    joined = spacy.tokens.Doc.from_docs([spacy.tokens.Doc(nlp.vocab).from_bytes(doc.to_bytes()) for doc in docs])
    for given in (mappings, iter(of_graphs), joined, [joined], [str(SAMPLE)]):
        found = [as_doc(item, nlp.vocab) for item in gold_items(given)][: len(docs)]
        for one, other in zip(docs, found, strict=True):
            assert one.text.rstrip() == other.text.rstrip()
            assert one.to_json()["tokens"] == other.to_json()["tokens"]


TWO: dict[str, Any] = {"tokens": ["Go", "now"], "heads": [0, 1]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([TWO, {**TWO, "heads": [2, 1]}], r"^item 2: a tree has no cycle"),
        ({**TWO, "heads": "01"}, r"^item 1: heads is '01'; give a list with one for each word$"),
        ({**TWO, "upos": ["VB", ""]}, r"^item '1': the tag 'VB' in UPOS is none of Universal Dependencies, which has"),
        ({**TWO, "upos": ["VERB"]}, r"^item '1': upos is \['VERB'\]; give a list with one for each of 2 words$"),
        ({**TWO, "upos": [8, 2]}, r"^item '1': upos has 8; give the names of tags, and None or '_' for no tag$"),
        ({**TWO, "id": "a", "text": "Went now"}, r"^item 'a': these words are not in the text, .*: 'Go'; leave the te"),
        ([nx.path_graph(2)], "^item '1': the edges are undirected; those of a Doc lead"),
        ([], "^there is no item; give one or more"),
        ([TWO, "x.conllu"], "^item 2: a text does not say what it is"),
    ],
)
def test_sentences_from_python_that_are_wrong_are_named(given: Any, message: str) -> None:
    with pytest.raises(StructPEError, match=message):
        [as_doc(item, spacy.vocab.Vocab()) for item in gold_items(given if given else iter(()))]


def test_bad_sentences_are_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.conllu"
    file.write_text("1\ta\t_\tX\t_\t_\t2\tdep\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n")
    with pytest.raises(StructPEError, match=r"bad.conllu: item 1: line 1: a tree has no cycle, but here is one"):
        train(Plan((str(file),)), tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == ["bad.conllu"]


@pytest.mark.parametrize("tags", only([["X", "X"], ["X", "NOUN"]], ["X", "NOUN"]))
def test_sentences_that_teach_nothing_are_refused(
    tmp_path: Path, tags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "few.conllu"
    file.write_text("".join(f"1\ta\t_\t{tag}\t_\t_\t0\troot\t_\t_\n\n" for tag in tags))
    with pytest.raises(
        StructPEError, match=r"^spaCy cannot learn from these sentences \(.*\); give more of them, with two t"
    ):
        train(Plan((str(file),), steps=2), tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == ["few.conllu"]
    assert capsys.readouterr().out == ""


def test_gold_documents_have_the_treebanks_trees() -> None:
    nlp = spacy.blank("cs")
    items = list(gold_items([corpus("ud/CS-CLTT/cs_cltt-ud-dev.conllu")]))[:25]
    docs = list(documents(items, nlp.vocab))
    assert [len(list(doc.sents)) for doc in docs] == [10, 10, 5]
    assert [word.text for doc in docs for word in doc] == [word for item in items for word in item.structure.nodes]
    first = as_doc(items[0], nlp.vocab)
    assert [word.tag_ for word in first] == list(items[0].metadata["xpos"])
    assert first.text.strip() == items[0].metadata["text"]


@pytest.mark.slow
@pytest.mark.parametrize("number", only([signal.SIGTERM, signal.SIGINT], signal.SIGTERM))
def test_a_signal_ends_it_with_the_model_of_its_last_step(
    number: signal.Signals, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = Plan((str(SAMPLE),), steps=5, language="en")
    told: list[int] = []

    def tell(progress: Progress) -> None:
        told.append(progress.step)
        if progress.step == 1:
            signal.raise_signal(number)

    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit) as caught:
        train(plan, tmp_path / "parser", tell)
    assert number == signal.SIGINT or caught.value.code == 128 + number  # type: ignore[attr-defined]
    assert signal.getsignal(number) == before
    assert (
        f"{number.name}: the training ends after this step, with its model; once more ends it" in capfd.readouterr().err
    )
    assert json.loads((tmp_path / "parser.part" / "state.json").read_text())["step"] == told[-1] == 2
    train(plan, tmp_path / "parser", lambda progress: told.append(progress.step))
    assert told == [0, 1, 2, 2, 3, 4, 5]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Path]:
    """A training that was stopped after its first scores, on a file of its own, and the folder of both."""
    folder = tmp_path_factory.mktemp("stopped")
    file = folder / "own.conllu"
    file.write_text(SAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    plan = Plan((str(file),), steps=5, language="en")

    def stop(progress: Progress) -> None:
        raise Stop

    with pytest.raises(Stop):
        train(plan, folder / "parser", stop)
    return plan, folder


@pytest.fixture
def part(stopped: tuple[Plan, Path]) -> Iterator[tuple[Plan, Path, Path]]:
    """Its plan, the folder of the parser that it did not come to, and its file; all as it was for each test."""
    plan, folder = stopped
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    yield plan, folder / "parser", folder / "own.conllu"
    assert not (folder / "parser").exists()
    assert {path for path in folder.rglob("*") if path.is_file()} == kept.keys()
    for path, content in kept.items():
        path.write_bytes(content)


def test_a_training_goes_on_with_the_sentences_that_it_began_with(part: tuple[Plan, Path, Path]) -> None:
    plan, out, file = part
    text = file.read_text()
    for old, new, what in (
        ("\tnsubj\t", "\tobj\t", "relation labels of the training sentences"),
        ("\tVERB\t", "\tNOUN\t", "tags and blanks of the training sentences"),
    ):
        assert old in text
        file.write_text(text.replace(old, new, 1))
        with pytest.raises(StructPEError, match=rf"have changed since this run began: .*{what}"):
            train(plan, out)


@pytest.mark.parametrize("name", ["plan.json", "state.json", "train.spacy", "SHA256SUMS"])
def test_damage_to_what_it_goes_on_from_is_seen(part: tuple[Plan, Path, Path], name: str) -> None:
    plan, out, _ = part
    file = out.with_name("parser.part") / name
    content = file.read_bytes()
    cut = b"[" * 50_000 if name.endswith("json") else b""
    for wrong in (cut, bytes([*content[:30], content[30] ^ 1, *content[31:]])):
        file.write_bytes(wrong)
        with pytest.raises(StructPEError, match="remove the folder, and train again"):
            train(plan, out)


def test_a_model_of_an_unknown_training_is_not_gone_on_with(part: tuple[Plan, Path, Path]) -> None:
    plan, out, _ = part
    out.with_name("parser.part").joinpath("plan.json").unlink()
    with pytest.raises(FileExistsError, match=r"this is a folder that structpe did not make"):
        train(plan, out)
    out.with_name("parser.part").joinpath("plan.json").touch()


def test_a_parser_without_a_folder_and_a_second_training_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for out in ("", ".", Path(""), "/", "a/.."):
        with pytest.raises(StructPEError, match=r"^the folder of the new parser has no name; give one$"):
            train(Plan((str(SAMPLE),)), out)
    monkeypatch.setattr(files, "PATIENCE", 0.1)
    with (
        files.lock(tmp_path / "parser.part"),
        pytest.raises(StructPEError, match=r"parser\.part: another writer is at work there; wait until it has ended"),
    ):
        train(Plan((str(SAMPLE),)), tmp_path / "parser")


@pytest.mark.slow
def test_parts_of_two_parsers_are_not_one(parser: Path, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(parser, tmp_path / "changed"))
    load_parser(changed)
    weights = changed / "parser" / "model"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    with pytest.raises(StoreError, match=r"damaged: its parser/model has other bytes than its checksum"):
        load_parser(changed)


@pytest.mark.slow
def test_a_parser_with_weights_that_are_no_numbers_is_neither_written_nor_read(parser: Path, tmp_path: Path) -> None:
    nlp = load_parser(parser)
    model = next(node for node in nlp.get_pipe("parser").model.walk() if node.has_param("W"))  # type: ignore[attr-defined]
    model.set_param("W", model.get_param("W") * np.nan)
    with pytest.raises(ParsingError, match="the weights of parser are no longer finite"):
        _write(nlp, tmp_path / "made")
    nlp.to_disk(tmp_path / "spoilt")  # without checksums, as another program writes it
    with pytest.raises(StoreError, match="the weights of parser are not finite; train the parser again"):
        load_parser(tmp_path / "spoilt")


@pytest.mark.parametrize("make", FOREIGN, ids=FOREIGN_IDS)
def test_what_has_the_name_of_the_part_and_is_none_stays(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "parser.part")
    before = contents(tmp_path)
    with pytest.raises(FileExistsError, match=r"this is a (file|folder|link) that structpe did not make"):
        train(PLAN, tmp_path / "parser")
    assert contents(tmp_path) == before


def test_what_a_process_killed_at_its_very_end_left_beside_the_parser_goes(tmp_path: Path) -> None:
    (tmp_path / "parser").mkdir()
    (tmp_path / ".parser.part.tmp" / "gone").mkdir(parents=True)
    (tmp_path / ".parser.part.tmp" / files.MARK).touch()
    with pytest.raises(StructPEError, match=r"parser: the folder exists; remove it, or choose another folder"):
        train(PLAN, tmp_path / "parser")
    assert contents(tmp_path) == {"parser": "folder"}
