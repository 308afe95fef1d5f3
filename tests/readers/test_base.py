from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import structpe.formats.text
from structpe.errors import MissingExtra, ReadError, StructPEError
from structpe.formats import READERS, Item, Skipped, read, stream
from structpe.formats.reading import Reading
from structpe.structure import path
from tests.datasets import SAMPLES
from tests.examples import examples
from tests.together import together

AMR = "(a / alpha)\n\n(b / beta :ARG0 x2)\n\n(c / gamma)\n\n(d / delta\n"


def test_every_reader_is_described():
    assert set(READERS) >= {"amr", "conllu", "smiles", "tokens", "triples", "webnlg"}
    for name, reader in READERS.items():
        assert reader.name == name
        assert all(suffix.startswith(".") for suffix in reader.suffixes)
        assert reader.doc.endswith(".")


def test_a_suffix_chooses_the_reader(write):
    assert read(write("a.amr", "(a / alpha)"))[0].structure.nodes == ("alpha",)
    assert read(write("a.tokens", "a b"))[0].structure.nodes == ("a", "b")
    assert read(write("a.smi", "CO"))[0].structure.nodes == ("C", "O")


def test_an_unclaimed_suffix_asks_for_a_reader(write):
    with pytest.raises(
        ReadError, match=r"no reader claims '\.yaml' files; say which with reader= or --reader, one of '"
    ):
        read(write("a.yaml", "{}"))


def test_two_readers_of_a_suffix_ask_for_one(write, monkeypatch):
    other = READERS["tokens"].__class__("other", (".amr",), "Other.", READERS["tokens"].items)
    list(READERS)
    monkeypatch.setitem(READERS._classes, "other", other)
    with pytest.raises(ReadError, match=r"several readers read '\.amr' files; .* one of 'amr', 'other'"):
        read(write("a.amr", AMR))


@pytest.mark.parametrize(
    ("yielded", "message"),
    [
        (Item("1", path(["a"])), r"reader 'own' made an item whose structure is '1'; give Item\(structure, texts, id="),
        (path(["a"]), "reader 'own' yields Structure; yield an Item, an attempt to make one, or the error of a bad"),
        (None, "reader 'own' yields NoneType; yield an Item"),
    ],
)
def test_a_reader_of_a_user_that_yields_something_else(write, monkeypatch, yielded, message):
    own = READERS["tokens"].__class__("own", (".own",), "Own.", lambda file: iter([yielded]))
    list(READERS)
    monkeypatch.setitem(READERS._classes, "own", own)
    with pytest.raises(ReadError, match=rf"a\.own: {message}"):
        read(write("a.own", "x"))


def test_an_unknown_reader_names_the_nearest(write):
    with pytest.raises(ReadError, match=r"no reader named 'conlu'\. Did you mean 'conllu'\?"):
        read(write("a.txt", "x"), reader="conlu")


def test_an_unknown_option_names_those_there_are(write):
    with pytest.raises(ReadError, match=r"reader 'smiles' has no option named 'col'. Did you mean 'column'"):
        read(write("a.csv", "smiles\nC\n"), col="smiles")


def test_a_wrong_on_error_says_what_to_give(write):
    with pytest.raises(ReadError, match="on_error is 'ignore'; give 'raise' or 'skip'"):
        read(write("a.amr", AMR), on_error="ignore")


def test_a_missing_path_is_named(tmp_path):
    with pytest.raises(ReadError, match=r"nowhere\.amr: there is no such file or folder; check the path"):
        read(tmp_path / "nowhere.amr")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_an_error(write):
    file = write("a.amr", AMR)
    file.chmod(0)
    with pytest.raises(ReadError, match="cannot be read"):
        read(file)


@together("name", ["a.amr", "a.tokens", "a.conllu", "a.tsv", "a.smi"])
@together("content", ["", "\n\n"])
def test_an_empty_file_is_an_error(write, name, content):
    with pytest.raises(StructPEError, match=r"there is no item in the file; reader|has no token|has no node"):
        read(write(name, content))


@pytest.mark.parametrize("name", ["a.amr", "a.tokens", "a.conllu", "a.tsv", "a.smi", "a.csv"])
def test_bytes_that_are_not_utf8_are_named(write, name):
    first = {"a.csv": b"smiles\n", "a.tsv": b"a\tr\tb\n", "a.smi": b"C\n"}.get(name, b"# comment\n")
    message = rf"{name}: (item 1: )?line 2: byte 0xe9 at column 4 is not UTF-8; convert the file first, for example"
    with pytest.raises(ReadError, match=message):
        read(write(name, first + b"caf\xe9\n"))


def test_a_byte_order_mark_is_no_part_of_the_text(write):
    assert read(write("a.tokens", b"\xef\xbb\xbfa b\r\n"))[0].structure.nodes == ("a", "b")


def test_the_first_bad_item_stops_the_reading(write):
    with pytest.raises(ReadError, match=r"a\.amr: item 2: line 3: variable 'x2', :ARG0 of 'b', is not introduced"):
        read(write("a.amr", AMR))


def test_bad_items_are_skipped_and_reported(write):
    file = write("a.amr", AMR)
    reading = read(file, on_error="skip")
    assert [item.structure.nodes for item in reading] == [("alpha",), ("gamma",)]
    assert [skipped.place for skipped in reading.skipped] == [f"{file}: item 2: line 3", f"{file}: item 4: line 7"]
    report = reading.report().split("\n")
    assert report[0] == "skipped 2 of 4 items:"
    assert report[2] == f"  {file}: item 4: line 7: {reading.skipped[1].message}"
    assert "the graph is not closed: 1 '(' still open after line 7" in report[2]


def test_nothing_skipped_is_said_too(write):
    assert read(write("a.amr", "(a / alpha)")).report() == "skipped 0 of 1 items"


def test_a_long_report_says_how_many_more():
    reading = Reading((), tuple(Skipped(f"item {i}", "bad") for i in range(25)))
    assert reading.report().split("\n")[-1] == "  and 5 more"


def test_skipping_everything_is_an_error(write):
    with pytest.raises(ReadError, match="no item could be read; check that the reader fits the file; skipped 1 of 1 i"):
        read(write("a.amr", "plain text"), on_error="skip")


def test_a_broken_file_keeps_what_was_read_before(write):
    entry = "<entry eid='1'><modifiedtripleset><mtriple>a | r | b</mtriple></modifiedtripleset></entry>"
    file = write("a.xml", f"<benchmark>\n{entry}\n{entry}</benchmark")
    reading = read(file, on_error="skip")
    assert len(reading) == 2
    assert reading.skipped[0].place == f"{file}: line 3"
    assert reading.skipped[0].message.endswith("(nothing after this was read from the file)")


def test_a_folder_is_read_file_by_file_in_order(write, tmp_path):
    for name in ("b/2.amr", "a/1.amr", "b/10.amr", "a/notes.md", "a/.hidden.amr"):
        write(f"data/{name}", f"(x / {name.replace('/', '-')})")
    assert [item.structure.nodes[0] for item in read(tmp_path / "data")] == ["a-1.amr", "b-10.amr", "b-2.amr"]


def test_a_folder_without_a_fitting_file_says_what_would_fit(write, tmp_path):
    write("data/a.md", "x")
    with pytest.raises(ReadError, match=r"the folder has no file whose name ends in \.conll, \.conllu"):
        read(tmp_path / "data", reader="conllu")


def test_a_reading_is_a_sequence():
    items = tuple(Item(path([word]), id=word) for word in "abc")
    reading = Reading(items)
    assert len(reading) == 3
    assert reading[1] is items[1]
    assert reading[1:] == items[1:]
    assert list(reading) == list(items)
    assert [structure.nodes for structure in reading.structures] == [("a",), ("b",), ("c",)]


def test_streaming_does_not_wait_for_the_end(write):
    file = write("a.tokens", "good\n" * 3 + "\n")
    assert [item.id for item in itertools.islice(stream(file), 3)] == ["1", "2", "3"]
    skipped: list[Skipped] = []
    assert len(list(stream(file, skip=skipped.append))) == 3
    assert len(skipped) == 1


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("a.ttl", "pyoxigraph", "kg"), ("a.smi", "rdkit", "mol")],
)
def test_a_missing_package_names_its_extra_and_is_not_skipped(write, monkeypatch, name, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"'{package}' is needed .* pip install 'structpe\[{extra}\]'"):
        read(write(name, "(C / C)"), on_error="skip")


SOURCES = {
    "amr": b'# ::id 1\n(w / want-01~e.1 :ARG0 (b / boy) :op1 "a")\n\n(c / cat :polarity - :ARG0-of c)\n',
    "agenda": b"T .\ta ; b\t<task> <method>\t0 1 1 ; 1 0 0\tsee <task_0> .\t0 -1\n",
    "conllu": b"# sent_id = 1\n# text = ab\n1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta\t_\tX\t_\t_\t0\troot\t0:root\t_\n"
    b"2\tb\t_\tX\t_\t_\t1\tdep\t1:dep|2.1:x\tSpaceAfter=No\n2.1\tc\t_\t_\t_\t_\t_\t_\t1:y\t_\n",
    "graph6": b"DQc\n:Fa@x^\n&DI?AO?\n",
    "ptb": b"( (S (NP (DT a)\n (NN b)) (VP (-NONE- *) c)))\n(X (Y -LRB-))\n",
    "webnlg": b"<a><entry eid='1'><modifiedtripleset><mtriple>a | r | b</mtriple></modifiedtripleset></entry></a>",
    "smiles": b"CCO ethanol\nC(=O)[O-].[Na+]\n",
    "triples": b"a\tr\tb\nb\tr\tc\n",
    "tokens": b"the dog\nbarks .\n",
    "scan": b"IN: jump twice OUT: I_JUMP I_JUMP\nIN: walk OUT: I_WALK\n",
    "cogs": b"A cat ran .\tcat ( x _ 1 ) AND run . agent ( x _ 2 , x _ 1 )\tin_distribution\n",
    "listops": b"9\t( ( ( [MAX 2 ) 9 ) ] )\n7\t[SM 3 [MIN 4 5 ] ]\n",
}


@pytest.mark.parametrize("name", SOURCES)
@given(data=st.data())
@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_read_or_refused_in_our_words(write, name, data):
    content = bytearray(SOURCES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        content[start : start + data.draw(st.integers(0, 6))] = data.draw(
            st.binary(max_size=3) | st.sampled_from([bytes([byte]) for byte in b'()"/:~#\n\t<&1-.|;'])
        )
    try:
        read(write("a.damaged", bytes(content)), name, on_error="skip")
    except StructPEError as error:
        assert error.places  # noqa: PT017  reading is allowed to succeed


CARDS = sorted(SAMPLES.glob("*/card.yaml"))


@together("card", CARDS)
def test_the_samples_of_the_project_hold_what_their_cards_say(card):
    content = card.read_text()
    reader = re.search(r"^reader: (\S+)$", content, re.MULTILINE)
    splits = re.findall(r"file: (\S+)\n *items: (\d+)", content)
    assert reader
    assert splits
    for file, items in splits:
        reading = read(card.parent / file, reader[1])
        assert len(reading) == int(items)
        assert all(item.id and item.structure.name for item in reading)


def test_a_stream_tells_how_far_it_is(write, tmp_path):
    write("data/a.tokens", ("x" * 199 + "\n") * 2_500)
    write("data/b.tokens", "another\n" * 10)
    told: list[tuple[int, int]] = []
    total = 2_500 * 200 + 80
    items = stream(tmp_path / "data", progress=lambda done, of: told.append((done, of)))
    assert next(items).id == "1"
    assert told == [(1 << 17, total)]
    assert len(list(items)) == 2_509
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert (told[-1], {of for _, of in told}) == ((total, total), {total})


FIRST = {"a.tsv": "a\tr\tb", "a.smi": "C", "a.g6": "DQc", "a.ptb": "(X a)"}


@pytest.mark.parametrize("name", ["a.tokens", "a.conllu", "a.tsv", "a.smi", "a.g6", "a.ptb", "a.amr"])
def test_a_line_without_an_end_is_refused(write, monkeypatch, name):
    monkeypatch.setattr(structpe.formats.text, "LIMIT", 1000)
    with pytest.raises(
        ReadError, match=r"line 2: the line is longer than 1000 bytes, too long for a graph; check that"
    ):
        read(write(name, FIRST.get(name, "# comment") + "\n" + "x" * 2000))


def test_ids_that_several_items_have_are_told(write):
    assert read(write("a.amr", "# ::id x\n(a / b)\n\n# ::id x\n(c / d)\n\n# ::id y\n(e / f)")).duplicates == ["x"]


def test_several_paths_are_read_one_after_another(write):
    one, two = write("a.tokens", "a b\n"), write("b.amr", "(a / alpha)\n\n(c / gamma)\n")
    found = read([one, str(two)])
    assert len(found) == 1 + len(read(two))
    assert [item.id for item in read((two, one))][-1] == read(one)[0].id
    assert [item.structure.nodes for item in stream([one, one])] == [("a", "b")] * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "the list of paths is empty; give a file, a folder, or a list of"),
        ("", "the path is empty; give a file or a folder"),
        (None, r"read takes the path of a file or folder, or a list of paths; given is None \(NoneType\)"),
        (3, r"given is 3 \(int\)"),
        (b"a.amr", r"given is b'a.amr' \(bytes\)"),
        (["a.amr", None], r"given is None \(NoneType\)"),
    ],
)
def test_what_is_no_path_is_said(given, message):
    with pytest.raises(ReadError, match=message):
        read(given)


@pytest.mark.parametrize(
    ("name", "option", "value", "message"),
    [
        ("table", "threshold", "high", r"option 'threshold' of reader 'table' takes a number; given is 'high'$"),
        ("table", "bins", None, r"'bins' of reader 'table' takes a whole number; given is null$"),
        ("table", "bins", True, r"takes a whole number; given is True$"),
        ("table", "columns", 3, r"takes a list of texts or null; given is 3$"),
        ("triples", "columns", ["h"], r"takes text or null; given is \['h'\]$"),
        ("agenda", "title", "drop", r"takes true or false; given is 'drop'$"),
        ("webnlg", "lang", 3, r"takes text or null; given is 3$"),
    ],
)
def test_options_of_another_type_are_refused_before_a_file_is_opened(write, name, option, value, message):
    file = write("a.xml" if name == "webnlg" else "a.tsv", "x")
    with pytest.raises(ReadError, match=message):
        read(file, name, **{option: value})


def test_no_option_of_a_reader_takes_what_it_cannot_use(write):
    """Whatever is given, the answer is an error of ours or a reading, never one of Python's."""
    file = write("a.txt", "x\n")
    for name, known in READERS.items():
        for option in known.options:
            for value in (3, -1, None, True, "nonsense", [1, "a"], {"a": 1}, 1.5, ""):
                with contextlib.suppress(StructPEError):
                    read(file, name, **{option: value})


def test_a_reader_without_annotations_takes_any_value(write):
    def bare(file, size=3):
        yield Item(path(["w"] * size))

    list(READERS)
    READERS.add("bare-of-a-test", READERS["tokens"].__class__("bare-of-a-test", (), "Bare.", bare))
    try:
        assert read(write("a.txt", "x"), "bare-of-a-test", size=2)[0].structure.size == 2
    finally:
        READERS.forget("bare-of-a-test")
