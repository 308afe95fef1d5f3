from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import structpe
from structpe.data import store as store_module
from structpe.data.encode import encode
from structpe.data.store import load, write
from structpe.encodings import ENCODINGS, Depth, Distance, Encoded, Encoding, Laplacian, Neighbours, Offset, Order
from structpe.errors import EncodingError, StoreError
from structpe.structure import Structure, path
from structpe.terms import Listed, Lookup
from tests.strategies import trees

SENTENCES = [path(["x"] * n, name=f"s:{n}") for n in (3, 1, 300, 7, 2)]  # 300: an index of two bytes
ENCODED_BY = (Offset(), Order(), Laplacian(4), Neighbours())


def assert_same(one: Encoded, other: Encoded) -> None:
    assert one.units == other.units
    for mine, others in ((one.values, other.values), (one.index, other.index), (one.listed, other.listed)):
        if mine is None or others is None:
            assert mine is others
        else:
            assert (mine.dtype, mine.shape) == (others.dtype, others.shape)
            assert mine.tobytes() == others.tobytes()


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_STRUCTURES", 2)


@pytest.fixture
def written(tmp_path: Path, small_shards: None) -> Path:
    write(tmp_path / "store", SENTENCES, ENCODED_BY)
    return tmp_path / "store"


@settings(max_examples=20, deadline=None)
@given(drawn=st.lists(trees(most=8), min_size=1, max_size=5))
def test_store_then_load_is_encode_for_every_encoding(drawn: list[Structure]) -> None:
    encodings = [e for cls in ENCODINGS.values() if encodes(e := cls().fit(drawn), drawn)]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_STRUCTURES", 2)
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
    assert [row[Offset()].index.dtype.name for row in store] == ["uint8", "uint8", "uint16", "uint8", "uint8"]
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
        if isinstance(mine, Listed):
            mine, other = mine.dense(3, 7, 7), other.dense(3, 7, 7)
        assert torch.equal(mine, other)


def test_it_knows_names_length_and_ends(written: Path) -> None:
    store = load(written)
    assert store.names == ("s:3", "s:1", "s:300", "s:7", "s:2")
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
    assert len(list((tmp_path / "store").iterdir())) == 4


def test_large_structures_make_small_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_PAIRS", 90_000)
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


@pytest.mark.parametrize("changed", ["structures", "encodings", "library", "shard cut off"])
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
    else:
        for shard in (tmp_path / "store.tmp").iterdir():
            shard.write_bytes(shard.read_bytes()[:20])
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
    assert sorted(file.name for file in (tmp_path / "store").iterdir()) == ["00000.safetensors", "index.json"]


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


def test_a_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no store at .* \(no index.json\); give the folder that"):
        load(tmp_path)


def test_other_encodings_are_refused(written: Path) -> None:
    expected = (
        r"store was not encoded by Distance\(limit=3\); it was by: Offset\(\), Order\(\), Laplacian\(k=4, .*ask for"
    )
    with pytest.raises(StoreError, match=expected):
        load(written, [Order(), Distance(limit=3)])


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
    index = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps(index | changes))


def test_another_format_is_refused(written: Path) -> None:
    rewrite_index(written, format=99)
    with pytest.raises(StoreError, match="has format 99, this library reads 1; encode again"):
        load(written)


@pytest.mark.parametrize("encoding", [{"name": "nonsense", "options": {}}, {"name": "order", "options": {"x": 1}}])
def test_an_encoding_of_another_version_is_refused(written: Path, encoding: dict[str, Any]) -> None:
    rewrite_index(written, encodings=[encoding])
    with pytest.raises(StoreError, match=r"has an encoding that this library does not know, .*; encode again"):
        load(written)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": 1}'])
def test_a_damaged_index_is_refused(written: Path, content: bytes) -> None:
    (written / "index.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"index.json: the file is damaged \(.*\); encode again"):
        load(written)


def test_a_damaged_shard_is_refused(written: Path) -> None:
    shard = written / "00000.safetensors"
    shard.write_bytes(b"\xff" * shard.stat().st_size)
    store = load(written)
    with pytest.raises(
        StoreError, match=r"00000.safetensors: the file is damaged \(SafetensorError: .*\); encode again"
    ):
        store[0]
    assert len(store[2]) == len(ENCODED_BY)


def test_the_index_says_who_wrote_it(written: Path) -> None:
    index = json.loads((written / "index.json").read_text())
    assert index["library"] == structpe.__version__
    assert index["encodings"][2] == {
        "name": "laplacian",
        "options": {"k": 4, "components": True, "skip": 1, "minutes": 1},
    }


def test_arrays_of_no_plain_type_are_refused() -> None:
    from structpe.data._shard import pack

    with pytest.raises(StoreError, match=r"a store holds arrays of bool, .*; one has dtype complex128 and 1 axes"):
        pack([[Encoded(np.zeros(2, dtype=complex))]])
