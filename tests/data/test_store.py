from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError

import structpe
from structpe.data import chunks, store_writer
from structpe.data import store as store_module
from structpe.data import store_index as store_index_module
from structpe.data.store import load, write
from structpe.encodings import (
    ENCODINGS,
    Binned,
    Column,
    Depth,
    Distance,
    Encoded,
    Encoding,
    Laplacian,
    Neighbours,
    Offset,
    Order,
    Resistance,
)
from structpe.errors import EncodingError, StoreError
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.system.files import sealed, sha256_of, unsealed
from structpe.terms import Lookup, SparsePairs
from tests.encodings.asking import unpadded
from tests.examples import examples
from tests.killing import killed_at
from tests.strategies import trees

TABLES = ["digests.safetensors", "index.json", "shards.safetensors"]
SENTENCES = [path(["x"] * n, name=f"s:{n}") for n in (3, 1, 300, 7, 2)]  # 300: an index of two bytes
ENCODED_BY = (Offset(), Order(), Laplacian(4), Neighbours())


def assert_same(one: Encoded, other: Encoded) -> None:
    assert one.units == other.units
    assert one.values.dtype == other.values.dtype
    for mine, others in zip(content(one), content(other), strict=True):
        assert mine.shape == others.shape
        assert mine.tobytes() == others.tobytes()


def content(encoded: Encoded) -> list[np.ndarray]:
    """What an encoding says of each unit, each pair, or each listed pair."""
    if encoded.index is None:
        return [encoded.values]
    if encoded.listed is not None:
        return [encoded.listed, encoded.values[encoded.index]]
    return [unpadded(encoded.pairs())]


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "STRUCTURES", 2)


@pytest.fixture
def written(tmp_path: Path, small_shards: None) -> Path:
    write(tmp_path / "store", SENTENCES, ENCODED_BY)
    return tmp_path / "store"


@examples(3)
@given(drawn=st.lists(trees(most=8), min_size=1, max_size=5))
def test_store_then_load_is_encode_for_every_encoding(drawn: list[Structure]) -> None:
    encodings = [e for cls in ENCODINGS.values() if encodes(e := cls().fit(drawn), drawn)]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "STRUCTURES", 2)
        store = write(Path(folder) / "store", drawn, encodings)
        assert len(store) == len(drawn)
        assert store.encodings == tuple(encodings)
        for encoding in encodings:
            for item, structure in enumerate(drawn):
                assert_same(store[item][encoding], encoding.many([structure])[0])


def encodes(encoding: Encoding, structures: list[Structure]) -> bool:
    try:
        encoding.many(structures)
    except EncodingError:
        return False
    return True


def test_the_same_run_gives_the_same_bytes(tmp_path: Path, small_shards: None) -> None:
    folders = [tmp_path / str(i) for i in range(4)]
    for folder in folders:
        write(folder, SENTENCES, ENCODED_BY)
    contents = [{file.name: file.read_bytes() for file in folder.iterdir()} for folder in folders]
    assert all(each == contents[0] for each in contents)


def test_an_index_keeps_its_width(written: Path) -> None:
    store = load(written)
    assert [row[Offset()].index.dtype.name for row in store] == ["uint8", "uint8", "uint16", "uint16", "uint8"]
    for row, sentence in zip(store, SENTENCES, strict=True):
        for encoding in ENCODED_BY:
            assert_same(row[encoding], encoding.one(sentence))


def test_positions_of_a_batch_are_those_of_encode(written: Path) -> None:
    items = [3, 0, -1]
    stored, direct = load(written).positions(items), encode([SENTENCES[i] for i in items], ENCODED_BY)
    assert tuple(stored) == ENCODED_BY
    for encoding in ENCODED_BY:
        mine, other = stored[encoding], direct[encoding]
        if isinstance(mine, Lookup):
            mine, other = mine.dense(), other.dense()
        if isinstance(mine, SparsePairs):
            mine, other = mine.dense(3, 7, 7), other.dense(3, 7, 7)
        assert torch.equal(mine, other)


def test_it_knows_names_length_and_ends(written: Path) -> None:
    store = load(written)
    assert list(store.names) == ["s:3", "s:1", "s:300", "s:7", "s:2"]
    assert (store.names[-1], store.names[1:3], len(store.names)) == ("s:2", ["s:1", "s:300"], 5)
    assert_same(store[-5][Order()], store[0][Order()])
    assert repr(store) == f"Store({str(written)!r}, 5 structures, {list(ENCODED_BY)})"
    for item in (5, -6):
        with pytest.raises(IndexError, match=f"structure {item} of a store of 5"):
            store[item]


def test_only_what_is_asked_for_is_read(written: Path) -> None:
    store = load(written, [Order()])
    assert list(store[2]) == [Order()]


def test_it_can_be_sent_to_another_process(written: Path) -> None:
    store = load(written, [Order()])
    before = store[4]
    again = pickle.loads(pickle.dumps(store))
    assert again.encodings == (Order(),)
    assert_same(again[4][Order()], before[Order()])


def test_progress_is_told_after_each_shard(tmp_path: Path, small_shards: None) -> None:
    told: list[int] = []
    write(tmp_path / "store", iter(SENTENCES), [Order()], progress=told.append)
    assert told == [2, 4, 5]
    assert [file.name for file in tmp_path.iterdir()] == ["store"]
    assert len(list((tmp_path / "store").iterdir())) == 6


def test_large_structures_make_small_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PAIRS", 90_000)
    told: list[int] = []
    write(tmp_path / "store", SENTENCES, [Order()], progress=told.append)
    assert told == [3, 5]


class Interrupted(BaseException):
    """What a signal raises."""


def interrupted(after: int) -> Iterator[Structure]:
    yield from SENTENCES[:after]
    raise Interrupted


def test_an_interrupted_run_leaves_nothing_under_the_name_and_goes_on_later(
    tmp_path: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Interrupted):
        write(tmp_path / "store", interrupted(4), ENCODED_BY)
    assert not (tmp_path / "store").exists()
    with pytest.raises(
        StoreError, match=r"no store at .*store, only an unfinished one at .*store.tmp; run the same comm"
    ):
        load(tmp_path / "store")
    computed = count_calls(monkeypatch, Order)
    store = write(tmp_path / "store", SENTENCES, ENCODED_BY)
    assert computed == [1]  # only the last shard, of one structure
    for row, sentence in zip(store, SENTENCES, strict=True):
        assert_same(row[Offset()], Offset().one(sentence))


@pytest.mark.parametrize(
    "changed", ["structures", "encodings", "library", "version", "shard cut off", "bit", "index", "journal"]
)
def test_what_an_interrupted_run_left_is_not_taken_if_anything_differs(
    changed: str, tmp_path: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Interrupted):
        write(tmp_path / "store", interrupted(4), [Order()])
    sentences, encodings = list(SENTENCES), [Order()]
    if changed == "structures":
        sentences[:4] = [path(["y"] * s.size, name=s.name) for s in sentences[:4]]
    elif changed == "encodings":
        encodings = [Order(), Depth()]
    elif changed == "library":
        monkeypatch.setattr(store_module, "__version__", "0.0.0")
    elif changed == "version":
        monkeypatch.setattr(Order, "version", Order.version + 1)
    elif changed == "index":
        (tmp_path / "store.tmp" / "index.json").write_text("{")
    elif changed == "journal":
        (tmp_path / "store.tmp" / "journal").write_text('{"file": "00000.safetensors"}\n{"structures"')
    else:
        for shard in (tmp_path / "store.tmp").glob("*.safetensors"):
            whole = shard.read_bytes()
            shard.write_bytes(whole[:20] if changed == "shard cut off" else whole[:-1] + bytes([whole[-1] ^ 1]))
    computed = count_calls(monkeypatch, Order)
    write(tmp_path / "store", sentences, encodings)
    assert computed == [2, 2, 1]


def count_calls(monkeypatch: pytest.MonkeyPatch, cls: type[Encoding]) -> list[int]:
    computed: list[int] = []
    original = cls.many

    def many(self: Encoding, structures: list[Structure]) -> list[Encoded]:
        computed.append(len(structures))
        return original(self, structures)

    monkeypatch.setattr(cls, "many", many)
    return computed


def test_shards_of_a_longer_interrupted_run_go_away(tmp_path: Path, small_shards: None) -> None:
    with pytest.raises(Interrupted):
        write(tmp_path / "store", interrupted(4), [Order()])
    write(tmp_path / "store", SENTENCES[:2], [Order()])
    assert sorted(file.name for file in (tmp_path / "store").iterdir()) == ["00000.safetensors", *TABLES]


def test_an_encoding_that_cannot_says_for_which_structure(tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match=r"^g:4: encoding 'depth': the structure has no root"):
        write(tmp_path / "store", [path("ab"), Structure(("a",), np.zeros((0, 2), int), name="g:4")], [Depth()])
    assert not (tmp_path / "store").exists()


def test_what_write_refuses(written: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="store exists already; remove it, or choose another folder"):
        write(written, SENTENCES, [Order()])
    with pytest.raises(StoreError, match="there is no structure to store in"):
        write(tmp_path / "none", [], [Order()])
    with pytest.raises(StoreError, match=r"there is no encoding to store in .*; give one or more of: adjacency, "):
        write(tmp_path / "none", SENTENCES, [])
    assert [file.name for file in tmp_path.iterdir()] == ["store"]


def test_a_store_that_is_there_is_opened_if_it_is_the_same(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    computed = count_calls(monkeypatch, Order)
    store = write(written, iter(SENTENCES), ENCODED_BY, say=told.append)
    assert (computed, len(store)) == ([], 5)
    assert told == [f"{written} exists already, with the same structures and encodings; nothing is encoded"]


@pytest.mark.parametrize("other", ["structures", "names", "fewer", "encodings", "library"])
def test_a_store_that_is_there_is_not_taken_for_another(
    other: str, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences, encodings = list(SENTENCES), ENCODED_BY
    if other == "structures":
        sentences[3] = path(["y"] * 7, name="s:7")
    elif other == "names":
        sentences[3] = path(["x"] * 7, name="other")
    elif other == "fewer":
        sentences = sentences[:4]
    elif other == "encodings":
        encodings = encodings[:3]
    else:
        monkeypatch.setattr(store_module, "__version__", "0.0.0")
    before = {file.name: file.read_bytes() for file in written.iterdir()}
    why = {
        "encodings": r"it is a store of the encodings Offset\(\), Order\(\), Laplacian",
        "library": "was encoded by structpe",
    }.get(other, "it is a store of other structures")
    with pytest.raises(StoreError, match=rf"store exists already; remove it, or choose another folder: .*{why}"):
        write(written, sentences, encodings)
    assert {file.name: file.read_bytes() for file in written.iterdir()} == before


@pytest.mark.parametrize("damage", ["a byte", "cut off", "gone"])
def test_a_damaged_shard_is_named_and_encoded_again(
    damage: str, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file.name: file.read_bytes() for file in written.iterdir()}
    shard = written / "00001.safetensors"
    shard.write_bytes(before[shard.name][:-1] + (b"!" if damage == "a byte" else b""))
    if damage == "gone":
        shard.unlink()
    computed, told = count_calls(monkeypatch, Order), list[str]()
    store = write(written, SENTENCES, ENCODED_BY, say=told.append)
    assert computed == [2]  # this shard only
    assert told[0] == f"{shard} is missing or damaged; it is encoded again"
    assert {file.name: file.read_bytes() for file in written.iterdir()} == before
    assert_same(store[2][Order()], Order().one(SENTENCES[2]))


def test_a_damaged_shard_that_comes_out_otherwise_is_refused(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = written / "00001.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1] + b"!")
    monkeypatch.setattr(Order, "many", lambda self, structures: Depth().many(structures[::-1]))
    with pytest.raises(StoreError, match="is damaged, and this machine does not give the same bytes again"):
        write(written, SENTENCES, ENCODED_BY)


def test_two_writers_of_one_store_do_the_work_once(tmp_path: Path, small_shards: None) -> None:
    """In processes; the second is told that it waits, and finds what the first has made."""
    waits, goes = os.pipe(), os.pipe()

    def slowly() -> Iterator[Structure]:
        yield from SENTENCES[:4]
        os.write(waits[1], b"x")  # one shard is written
        os.read(goes[0], 1)
        yield SENTENCES[4]

    first = process(lambda: write(tmp_path / "store", slowly(), ENCODED_BY))
    os.read(waits[0], 1)
    told: list[str] = []

    def say(line: str) -> None:
        told.append(line)
        if len(told) == 1:
            os.write(goes[1], b"x")

    store = write(tmp_path / "store", SENTENCES, ENCODED_BY, say=say)
    assert os.waitpid(first, 0)[1] == 0
    assert told == [
        f"another process writes to {tmp_path / 'store'}; waiting for it",
        f"{tmp_path / 'store'} exists already, with the same structures and encodings; nothing is encoded",
    ]
    store.verify()
    assert [file.name for file in tmp_path.iterdir()] == ["store"]


def process(work: Callable[[], object]) -> int:
    """The number of a fork of this process, which does the work."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


@pytest.mark.slow
def test_killed_at_any_moment_the_next_run_ends_with_the_same_bytes(tmp_path: Path, small_shards: None) -> None:
    """Nothing but a complete store ever has the name, and nothing is left beside it."""
    write(tmp_path / "never", SENTENCES[:3], ENCODED_BY)
    expected = {file.name: file.read_bytes() for file in (tmp_path / "never").iterdir()}
    place, moment = tmp_path / "killed" / "store", 1
    # Each goes on from what the one before has left; each second time it begins anew, to be killed later.
    while killed_at(moment, lambda: write(place, SENTENCES[:3], ENCODED_BY)):
        if place.exists():
            load(place).verify()
        if moment % 4 == 0:
            assert len(write(place, SENTENCES[:3], ENCODED_BY)) == 3
            assert {file.name: file.read_bytes() for file in place.iterdir()} == expected
            assert [file.name for file in place.parent.iterdir()] == ["store"]
            shutil.rmtree(place)
        moment += 3
    assert moment > 30


def test_a_full_disk_names_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(tensors: object, hidden: Path) -> None:
        hidden.write_bytes(b"half")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(store_writer, "save_file", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write(tmp_path / "store", SENTENCES, [Order()])
    assert caught.value.filename == str(tmp_path / "store")
    monkeypatch.undo()
    assert len(write(tmp_path / "store", SENTENCES, [Order()])) == 5
    assert [file.name for file in tmp_path.iterdir()] == ["store"]


def test_a_refused_shard_names_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(tensors: object, file: Path) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(file))

    monkeypatch.setattr(store_writer, "save_file", refused)
    with pytest.raises(PermissionError) as caught:
        write(tmp_path / "store", SENTENCES, [Order()])
    assert caught.value.filename == str(tmp_path / "store")


def test_every_file_of_a_store_is_readable_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "store", SENTENCES, [Order()])
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "store").iterdir()} == {0o640}


def test_a_store_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, str]] = []
    fsync, rename, replace = os.fsync, os.rename, os.replace

    def told_fsync(handle: int) -> None:
        done.append(("sync", os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    def told_rename(one: Any, other: Any) -> None:
        done.append(("rename", f"{one} {other}"))
        (rename if Path(one).is_dir() else replace)(one, other)

    for name, told in (("fsync", told_fsync), ("rename", told_rename), ("replace", told_rename)):
        monkeypatch.setattr(os, name, told)
    write(tmp_path / "store", SENTENCES, [Order()])
    kinds = [(what, Path(where.split()[-1]).name) for what, where in done]
    named = kinds.index(("rename", "store"))
    written_before = [("sync", name) for name in ("00000.safetensors", *TABLES, "store.tmp")]
    assert sorted(kinds[named - 5 : named]) == sorted(written_before)
    assert kinds[named + 1 :] == [("sync", tmp_path.name)]


def test_the_folder_that_one_is_in_is_there_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("", ".", ".."):
        with pytest.raises(StoreError, match=r"\. exists already; remove it, or choose another folder"):
            write(name, SENTENCES, [Order()])


def test_a_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no store at .* \(no index.json\); give the folder that"):
        load(tmp_path)


def test_other_encodings_are_refused(written: Path) -> None:
    expected = r"not encoded by Distance\(max_distance=3\); it was by: Offset\(\), Order\(\), Laplacian\(k=4, .*ask for"
    with pytest.raises(StoreError, match=expected):
        load(written, [Order(), Distance(max_distance=3)])


def test_a_missing_or_shortened_shard_is_refused(written: Path) -> None:
    shard = written / "00001.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"is incomplete: 00001.safetensors is missing or cut off; encode again"):
        load(written)
    shard.unlink()
    with pytest.raises(StoreError, match=r"00001.safetensors is missing"):
        load(written)


def test_a_changed_byte_is_found_by_verify(written: Path) -> None:
    load(written).verify()
    shard = written / "00001.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1] + b"!")
    with pytest.raises(StoreError, match=r"00001.safetensors has been changed since it was written; encode again"):
        load(written).verify()


def rewrite_index(folder: Path, **changes: Any) -> None:
    """As a library that was changed would have written it."""
    index = unsealed((folder / "index.json").read_text())
    (folder / "index.json").write_text(sealed(index | changes))


def test_another_format_is_refused(written: Path) -> None:
    rewrite_index(written, format=99)
    with pytest.raises(StoreError, match="has format 99, this library reads 5; remove it, and encode again"):
        load(written)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"shards": 2}, "the table tells of 3 shards, and the index of 2"),
        ({"shards": None}, "the table tells of 3 shards, and the index of None"),
        ({"structures": 4}, "the table has 5 structures, and the index 4"),
        ({"tables": None}, "TypeError"),
        ({"tables": {}}, "KeyError: 'shards.safetensors'"),
        ({"encodings": [{"name": "order"}]}, "KeyError: 'options'"),
    ],
)
def test_an_index_of_another_form_is_refused_though_its_checksum_is_right(
    written: Path, changes: dict[str, Any], told: str
) -> None:
    rewrite_index(written, **changes)
    with pytest.raises(StoreError, match=rf"index\.json: the file is damaged .*{told}.*; encode again"):
        load(written)


def test_an_index_that_is_too_deep_is_refused(written: Path) -> None:
    (written / "index.json").write_text("[" * 100_000)
    with pytest.raises(StoreError, match=r"index\.json: the file is damaged .*; encode again"):
        load(written)


@pytest.mark.parametrize("encoding", [{"name": "nonsense", "options": {}}, {"name": "order", "options": {"x": 1}}])
def test_an_encoding_of_another_version_is_refused(written: Path, encoding: dict[str, Any]) -> None:
    rewrite_index(written, encodings=[encoding])
    with pytest.raises(StoreError, match=r"that this library does not know, .*; import its code .*, or encode again"):
        load(written)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": 5}'])
def test_a_damaged_index_is_refused(written: Path, content: bytes) -> None:
    (written / "index.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"index.json: the file is damaged \(.*\); encode again"):
        load(written)


def test_a_damaged_shard_is_refused_when_it_is_opened(written: Path) -> None:
    shard = written / "00000.safetensors"
    content = bytearray(shard.read_bytes())
    content[-40:] = bytes(byte ^ 1 for byte in content[-40:])
    shard.write_bytes(content)
    store = load(written)
    with pytest.raises(StoreError, match=r"00000.safetensors has been changed since it was written; encode again"):
        store[0]
    assert len(store[2]) == len(ENCODED_BY)


def test_a_flipped_bit_anywhere_is_noticed_before_a_number_is_used(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    write(folder, SENTENCES[:2], ENCODED_BY)
    for name in ("00000.safetensors", "index.json"):
        whole = (folder / name).read_bytes()
        for place in range(0, len(whole), 19):  # and so each bit of a byte in turn
            flipped = bytearray(whole)
            flipped[place] ^= 1 << place % 8
            (folder / name).write_bytes(flipped)
            with pytest.raises(StoreError, match="encode again"):
                load(folder)[0]
        (folder / name).write_bytes(whole)
    assert len(load(folder)[0]) == len(ENCODED_BY)


@pytest.mark.parametrize("name", ["shards.safetensors", "digests.safetensors"])
def test_a_flipped_bit_in_a_table_gives_no_wrong_answer(name: str, tmp_path: Path, small_shards: None) -> None:
    write(tmp_path / "store", SENTENCES, [Order()])
    file = tmp_path / "store" / name
    whole, refused = file.read_bytes(), 0
    for place in range(0, len(whole), 5):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        file.write_bytes(flipped)
        try:
            store = load(tmp_path / "store")
            found = [store.find(each) for each in (*SENTENCES, OTHER)]
        except StoreError:
            refused += 1
        else:
            assert found == [0, 1, 2, 3, 4, None]
    assert refused > len(whole) // 10


OTHER = path(["y", "x"])


def test_a_structure_is_found_by_its_content(tmp_path: Path, small_shards: None) -> None:
    twice = [*SENTENCES, OTHER, path(["x"] * 3, name="another"), path(["y", "x"])]
    store = write(tmp_path / "store", twice, [Order()])
    assert [store.find(each) for each in twice] == [0, 1, 2, 3, 4, 5, 0, 5]
    assert store.find(path(["z"])) is None
    assert store.find(path(["x"] * 3, name="of any name")) == 0


def test_digests_that_begin_alike_are_told_apart(
    tmp_path: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 2**64 beginnings two are hardly ever equal; here all are."""
    monkeypatch.setattr(store_index_module, "_keys", lambda digests: np.zeros(len(digests), dtype=np.uint64))
    store = write(tmp_path / "store", [*SENTENCES, OTHER], [Order()])
    assert [store.find(each) for each in (*SENTENCES, OTHER)] == [0, 1, 2, 3, 4, 5]
    assert store.find(path(["z"])) is None


@pytest.mark.parametrize("name", ["shards.safetensors", "digests.safetensors"])
def test_a_missing_table_is_named(name: str, written: Path) -> None:
    (written / name).unlink()
    with pytest.raises(StoreError, match=rf"store is incomplete: {name} is missing; encode again"):
        load(written)


def test_one_encoding_is_a_sequence_that_is_read_on_demand(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, opened = load(written), list[Path]()
    values = store.of(Order())

    class Told(store_index_module.Shard):
        def __init__(self, file: Path) -> None:
            opened.append(file)
            super().__init__(file)

    monkeypatch.setattr(store_module, "Shard", Told)
    assert (len(values), opened) == (5, [])
    assert_same(values[-1], Order().one(SENTENCES[-1]))
    assert_same(store.of("order")[-1], values[-1])
    with pytest.raises(StoreError, match=r"the store has no encoding 'depth'. It has \[Offset"):
        store.of("depth")
    assert [file.name for file in opened] == ["00002.safetensors"]
    for mine, sentence in zip(values[1:4], SENTENCES[1:4], strict=True):
        assert_same(mine, Order().one(sentence))


def test_memory_does_not_grow_with_the_structures_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, checksums and numbers stay on the disk: what Python holds of a store does not know how large it is."""
    monkeypatch.setattr(chunks, "STRUCTURES", 50)
    held = []
    for count in (100, 1000):
        write(tmp_path / str(count), (path("ab", name=f"a name of some length {i}") for i in range(count)), [Order()])
        tracemalloc.start()
        store = load(tmp_path / str(count))
        values, names = store.of(Order()), store.names
        held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert len(values) == len(names) == count
    assert held[1] - held[0] < 900  # a byte for each structure more


def test_a_run_that_is_killed_while_the_disk_writes_is_not_repeated(
    tmp_path: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: object) -> None:
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "finish", interrupted)
        with pytest.raises(Interrupted):
            write(tmp_path / "store", SENTENCES, [Order()])
    computed = count_calls(monkeypatch, Order)
    assert len(write(tmp_path / "store", SENTENCES, [Order()])) == 5
    assert computed == []
    write(tmp_path / "never", SENTENCES, [Order()])
    one, two = ({f.name: f.read_bytes() for f in (tmp_path / name).iterdir()} for name in ("store", "never"))
    assert one == two


def test_the_journal_of_an_interrupted_run_grows_by_a_line_for_each_shard(tmp_path: Path, small_shards: None) -> None:
    journal = tmp_path / "store.tmp" / "journal"
    for after, lines in ((2, 1), (4, 2), (2, 2), (4, 2)):
        with pytest.raises(Interrupted):
            write(tmp_path / "store", interrupted(after), [Order()])
        assert len(journal.read_text().splitlines()) == lines
    journal.write_text(journal.read_text() + '{"file": "00')  # and was killed while it wrote a line
    assert len(write(tmp_path / "store", SENTENCES, [Order()])) == 5
    assert not (tmp_path / "store" / "journal").exists()


def test_the_checksum_of_a_shard_is_compared_once(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(store_module, "_OPEN", 1)  # so that shards are closed and opened again

    def count(file: Path) -> str:
        looked.append(file.name)
        return sha256_of(file)

    monkeypatch.setattr(store_module, "sha256_of", count)
    store = load(written)
    assert looked == []
    for _ in range(3):
        store.positions([0, 1, 4])
    assert looked == ["00000.safetensors", "00002.safetensors"]


def test_the_index_says_who_wrote_it(written: Path) -> None:
    index = json.loads((written / "index.json").read_text())
    assert index["library"] == structpe.__version__
    options = {"k": 4, "components": True, "skip": 1, "minutes": 1}
    assert index["encodings"][2] == {
        "name": "laplacian",
        "options": options,
        "versions": {"laplacian": Laplacian.version},
    }


def test_a_store_of_another_version_of_the_library_is_refused(written: Path) -> None:
    rewrite_index(written, library="0.0.0")
    with pytest.raises(StoreError, match=rf"encoded by structpe 0.0.0, and this is structpe {structpe.__version__}"):
        load(written)


def test_a_store_of_another_version_of_an_encoding_is_refused(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Laplacian, "version", Laplacian.version + 1)
    expected = rf"by version {Laplacian.version - 1} of the encoding 'laplacian', and this library has version "
    remedy = rf"which gives other numbers; remove {written} and encode again, or choose another folder \(--out\)"
    with pytest.raises(StoreError, match=expected + rf"{Laplacian.version}, {remedy}"):
        load(written)
    with pytest.raises(StoreError, match=remedy):
        write(written, SENTENCES, [Order(), Depth(), Laplacian(k=4)])


def test_an_encoding_of_another_one_has_the_versions_of_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "store", SENTENCES, [Binned(of=Resistance())])
    monkeypatch.setattr(Resistance, "version", Resistance.version + 1)
    with pytest.raises(StoreError, match="of the encoding 'resistance'"):
        load(tmp_path / "store")


def test_arrays_of_no_plain_type_are_refused() -> None:
    from structpe.data.store_index import pack

    with pytest.raises(StoreError, match=r"a store holds arrays of bool, .*; one is of complex128"):
        pack([Column.of([Encoded(np.zeros(2, dtype=complex))])])


@pytest.mark.parametrize("name", ["00000.safetensors", "digests.safetensors"])
def test_a_file_that_vanishes_after_a_store_is_opened_is_told(name: str, written: Path) -> None:
    store = load(written)
    (written / name).unlink()
    with pytest.raises(StoreError, match=rf"{name}.*(there is no such file|is missing); encode again"):
        _ = store[0] if name.startswith("0") else store.find(path("zz"))
    with pytest.raises(StoreError, match=r"(there is no such file|is missing); encode again"):
        store.verify()


def test_a_shard_that_vanishes_after_it_was_checked_is_told(written: Path) -> None:
    store = load(written)
    _ = store[0]
    store._open.clear()
    (written / "00000.safetensors").unlink()
    with pytest.raises(StoreError, match=r"00000\.safetensors: there is no such file; encode again"):
        _ = store[0]
