"""``structpe encode``: from a file to a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpe.cli import UsageError
from structpe.cli._inputs import InputFile, parse_encoding
from structpe.data import chunks
from structpe.data.store import load
from structpe.encodings import Distance, RandomWalk
from structpe.errors import StructureError
from structpe.formats import read
from structpe.structure import path
from structpe.transforms.nodes import levi
from tests.cli.running import SAMPLE, complaint, output, structpe

FILE = SAMPLE / "test.txt"


def test_what_is_stored_is_what_is_encoded(tmp_path: Path) -> None:
    words = [
        "--encoding",
        "distance:max_distance=3",
        "--encoding",
        '{"name": "random-walk", "steps": 4}',
        "--graph",
        "levi",
    ]
    shown = output("encode", FILE, "--reader", "amr", "--out", tmp_path / "store", *words)
    structures = [levi(structure) for structure in read(FILE, "amr").structures]
    by = "distance (max_distance=3), random-walk (steps=4)"
    assert shown == f"{tmp_path / 'store'}: {len(structures)} structures, encoded by {by}\n"
    store = load(tmp_path / "store")
    assert store.encodings == (Distance(max_distance=3), RandomWalk(steps=4))
    for stored, structure in zip(store, structures, strict=True):
        for encoding in store.encodings:
            expected = encoding.one(structure)
            if expected.index is None:
                np.testing.assert_array_equal(stored[encoding].values, expected.values)
            else:
                np.testing.assert_array_equal(stored[encoding].pairs(), expected.pairs())


def test_labels_are_learned_from_the_file(tmp_path: Path) -> None:
    output("encode", FILE, "--reader", "amr", "--encoding", "label-path", "--out", tmp_path / "store")
    (encoding,) = load(tmp_path / "store").encodings
    assert ":ARG0" in encoding.options()["labels"]


def test_bad_items_are_named_or_skipped(tmp_path: Path) -> None:
    file = tmp_path / "graphs.txt"
    file.write_text("# ::id good\n(w / want-01)\n\n# ::id bad\n(w / want-01 :ARG0 (\n\n# ::id last\n(g / go-02)\n")
    words = ["encode", file, "--reader", "amr", "--encoding", "distance", "--out", tmp_path / "store"]
    message = complaint(*words, code=1)
    assert message.startswith(f"{file}: item 2: 'bad'")
    assert not (tmp_path / "store").exists()
    done = structpe(*words, "--on-error", "skip")
    assert done.returncode == 0
    assert "2 structures" in done.stdout
    assert done.stderr.startswith(f"skipped 1 of 3 items:\n  {file}: item 2: 'bad'")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--encoding", "distanc"], 2, "there is no encoding named 'distanc'. Did you mean 'distance'? Nearest of "),
        (
            ["--encoding", "distance:max_distence=3"],
            2,
            "encoding 'distance' has no option named 'max_distence'. Did you mean 'max_distance'?",
        ),
        (
            ["--encoding", "distance:max_distance=x"],
            2,
            "option 'max_distance' of encoding 'distance' takes a whole number or null; given is 'x'",
        ),
        (
            ["--encoding", "distance:max_distance"],
            2,
            "--encoding 'distance:max_distance' is not of the form NAME or NAME:key=value",
        ),
        (["--encoding", "distance:max_distance=8,max_distance=9"], 2, "gives 'max_distance' twice; give it once"),
        (
            ["--encoding", "distance:max_distance=[1"],
            2,
            "--encoding 'distance:max_distance=[1' cannot be read: it is not YAML: ",
        ),
        (["--encoding", "distance", "--reader", "arm"], 1, "there is no reader named 'arm'. Did you mean 'amr'?"),
        (["--reader", "amr"], 2, "encode: the following arguments are required: --encoding"),
        (["--encoding", "distance", "--graph", "tree"], 2, "encode: argument --graph: invalid choice: 'tree'"),
    ],
)
def test_mistakes_are_explained(words: list[str], code: int, message: str, tmp_path: Path) -> None:
    assert message in complaint("encode", FILE, "--out", tmp_path / "store", *words, code=code)
    assert not list(tmp_path.iterdir())


def test_a_missing_file_and_an_existing_store(tmp_path: Path) -> None:
    unknown = tmp_path / "graphs.xyz"
    unknown.touch()
    assert complaint("encode", unknown, "--encoding", "distance", "--out", tmp_path / "store", code=1).startswith(
        f"{unknown}: no reader claims '.xyz' files; say which with reader="
    )
    words = ["--reader", "amr", "--encoding", "distance", "--out", tmp_path]
    assert (
        complaint("encode", "none.txt", *words, code=1) == "none.txt: there is no such file or folder; check the path"
    )
    assert (
        complaint("encode", FILE, *words, code=1) == f"{tmp_path} exists already; remove it, or choose another folder"
    )


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("distance", {"name": "distance"}),
        ("distance:max_distance=8", {"name": "distance", "max_distance": 8}),
        ("label-path:max_length=4,longer=symbol", {"name": "label-path", "max_length": 4, "longer": "symbol"}),
        ('{"name": "label-path", "labels": [":mod"]}', {"name": "label-path", "labels": [":mod"]}),
    ],
)
def test_how_an_encoding_is_written(text: str, described: dict[str, Any]) -> None:
    assert parse_encoding(text) == described


@pytest.mark.parametrize(
    "text", ["", ":max_distance=3", "distance:max_distance", "distance:=3", "{", "{}", '{"name": 3}']
)
def test_how_an_encoding_is_not_written(text: str) -> None:
    with pytest.raises(UsageError, match="--encoding"):
        parse_encoding(text)


@pytest.mark.slow
def test_two_jobs_write_what_one_does(tmp_path: Path) -> None:
    words = ["encode", FILE, "--reader", "amr", "--encoding", "distance"]
    output(*words, "--out", tmp_path / "one")
    output(*words, "--jobs", "2", "--out", tmp_path / "two")
    one, two = ({file.name: file.read_bytes() for file in (tmp_path / each).iterdir()} for each in ("one", "two"))
    assert one == two
    assert complaint(*words, "--jobs", "0", "--out", tmp_path / "three") == "--jobs is 0; give 1 or more"


def test_a_file_is_read_bit_by_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard is written before the next structures are read, unless an encoding learns from all."""
    monkeypatch.setattr(chunks, "STRUCTURES", 3)
    file = tmp_path / "some.tokens"
    file.write_text("a b\n" * 7 + "\n")  # the last line is bad
    words = ["encode", file, "--out", tmp_path / "store", "--encoding"]
    assert complaint(*words, "order", code=1).startswith(f"{file}: item 8: ")
    assert sorted(each.name for each in (tmp_path / "store.tmp").glob("*.safetensors")) == [
        "00000.safetensors",
        "00001.safetensors",
    ]
    complaint(*words[:3], tmp_path / "other", "--encoding", "words", code=1)
    assert not (tmp_path / "other.tmp").exists()


@pytest.mark.slow
def test_the_first_part_of_a_file_tells_its_size(tmp_path: Path) -> None:
    file = tmp_path / "some.tokens"
    file.write_text("a b c\n" * 100_000)
    (first, times, seconds), structures = InputFile(file).begun(lambda structure: structure)
    assert len(first) < 50_000
    assert len(first) * times == pytest.approx(100_000, rel=0.02)
    assert seconds > 0
    assert [next(structures) for _ in first] == list(first), "it is not read again"
    assert next(structures).size == 3
    file.write_text("a b c\n" * 100)
    (first, times, _), structures = InputFile(file).begun(lambda structure: path([*structure.nodes, "d"]))
    assert (len(first), times) == (100, 1.0)
    assert list(structures) == list(first)
    assert first[0].nodes == ("a", "b", "c", "d")


def test_a_bad_item_in_the_beginning_ends_the_file_in_its_place(tmp_path: Path) -> None:
    file = tmp_path / "some.tokens"
    file.write_text("a b\n" * 7 + "\n" + "a b\n")
    (first, times, _), structures = InputFile(file).begun(lambda structure: structure)
    assert (list(first), times) == ([], 0.0)
    assert [next(structures).size for _ in range(7)] == [2] * 7
    with pytest.raises(StructureError, match="item 8"):
        next(structures)
    (first, times, _), structures = InputFile(file, on_error="skip").begun(lambda structure: structure)
    assert (len(first), times, len(list(structures))) == (8, 1.0, 8)


def test_only_bad_items_are_no_store(tmp_path: Path) -> None:
    file = tmp_path / "bad.tokens"
    file.write_text("\n\n")
    words = ["encode", file, "--encoding", "order", "--out", tmp_path / "store", "--on-error", "skip"]
    done = structpe(*words)
    assert done.returncode == 1
    wrong = "no item could be read; check that the reader fits the file; skipped 2 of 2 items:"
    assert done.stderr.startswith(f"structpe: {file}: {wrong}")
    assert not (tmp_path / "store").exists()
