"""Items that other processes make are those of one process, in the same order, bad ones included."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, TypeVar

import pytest

from structpe.data.store import digests
from structpe.errors import ReadError, StructPEError
from structpe.formats import READERS, stream
from structpe.formats import reading as reading_module
from structpe.formats.reading import Item, Skipped, attempt

T = TypeVar("T")

GOOD = {
    "amr": "# ::id {i}\n(w / want-01 :ARG0 (b / boy))\n\n",
    "conllu": "# sent_id = {i}\n1\tboys\tboy\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\twant\twant\tVERB\t_\t_\t0\troot\t_\t_\n\n",
    "ptb": "(S (NP boys) (VP want{i}))\n",
    "smiles": "CC(=O)O{i}\n",
}
BAD = {
    "amr": "# ::id bad\n(w / want-01 :ARG0 (\n\n",
    "conllu": "# sent_id = bad\n1\tboys\tboy\tNOUN\t_\t_\t7\tnsubj\t_\t_\n\n",
    "ptb": "(S)\n",
    "smiles": "C1CC bad\n",
}


class Elsewhere(Executor):
    """Whatever goes to another process, and comes back, is copied."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        assert not kwargs
        self.calls += 1
        there, given = pickle.loads(pickle.dumps((fn, args)))
        done: Future[T] = Future()
        done.set_result(pickle.loads(pickle.dumps(there(*given))))
        return done


def outcomes(file: Path, name: str, executor: Executor | None) -> tuple[list[Any], list[Skipped]]:
    skipped: list[Skipped] = []
    items = list(stream(file, name, skipped.append, executor=executor))
    parts = [(item.id, item.texts, str(item.metadata), item.structure.name) for item in items]
    return [*parts, digests([item.structure for item in items]).tobytes()], skipped


def test_these_readers_are_apart() -> None:
    binary = {"parquet"}  # see its own tests
    assert {name for name, each in READERS.items() if each.parallel} - binary == set(GOOD) == set(BAD)


@pytest.mark.parametrize("name", GOOD)
def test_items_made_elsewhere_are_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_module, "_GROUP", 3)
    file = tmp_path / "file"
    some = [BAD[name] if i in (4, 5, 9) else GOOD[name].format(i=i if name != "smiles" else "") for i in range(11)]
    file.write_text("".join(some), encoding="utf-8")
    executor = Elsewhere()
    found, skipped = outcomes(file, name, executor)
    assert executor.calls == 4
    assert (found, skipped) == outcomes(file, name, None)
    assert (len(found), len(skipped)) == (8 + 1, 3)
    assert all(place.startswith(f"{file}: item ") for place, _ in skipped)
    errors = []
    for each in (executor, None):
        with pytest.raises(StructPEError) as raised:
            list(stream(file, name, executor=each))
        errors.append(str(raised.value))
    assert errors[0] == errors[1]
    assert errors[0].startswith(f"{file}: item 5: ")


def test_what_ends_a_file_ends_it_elsewhere_too(tmp_path: Path) -> None:
    file = tmp_path / "a.smi"
    file.write_bytes(b"CC\nCCC\n\xff\n")
    errors = []
    for executor in (Elsewhere(), None):
        skipped: list[Skipped] = []
        assert len(list(stream(file, None, skipped.append, executor=executor))) == 2
        errors.append(skipped)
    assert errors[0] == errors[1]
    assert "nothing after this was read from the file" in errors[0][0].message


def test_other_readers_stay_in_the_process(tmp_path: Path) -> None:
    file = tmp_path / "a.tokens"
    file.write_text("a b\n")
    executor = Elsewhere()
    assert [item.structure.nodes for item in stream(file, executor=executor)] == [("a", "b")]
    assert not executor.calls


def test_an_attempt_makes_an_item_or_its_error() -> None:
    def bad() -> Item:
        raise ReadError("it is empty")

    found = attempt(bad, "first", 7)()
    assert isinstance(found, ReadError)
    assert str(found) == "'first': line 7: it is empty"
