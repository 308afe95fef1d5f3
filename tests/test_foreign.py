"""What structpe did not make is neither removed nor changed, whatever its name, and no link is followed to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from structpe.data import store
from structpe.datasets.ogb import save
from structpe.encodings.distance import Distance
from structpe.errors import StructPEError
from structpe.formats import write
from structpe.structure import path
from structpe.system.files import MARK, atomic_text, atomic_write_folder, left_in, lock, sweep
from structpe.tasks.prediction.encodings import encode
from structpe.tasks.training import folder as runs
from tests.foreign import FOREIGN, FOREIGN_IDS, a_folder, contents
from tests.modules import ROOT

GRAPHS = [path(["a", "b"])]
WRITERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file": (lambda out: atomic_text(out, "text"), ".{}.tmp"),
    "a folder": (lambda out: atomic_write_folder(out, lambda hidden: (hidden / "x").touch()), ".{}.tmp"),
    "a pickle": (lambda out: save([], out), ".{}.tmp"),
    "a converted file": (lambda out: write(GRAPHS, out, "tokens"), ".{}.tmp"),
    "a store": (lambda out: store.write(out, GRAPHS, [Distance()]), ".{}.tmp"),
    "a store that grows": (lambda out: store.write(out, GRAPHS, [Distance()]), "{}.tmp"),
}
"""What writes, and the name of what it keeps unfinished."""


@pytest.mark.parametrize("make", FOREIGN, ids=FOREIGN_IDS)
@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_refuses_and_names_what_has_its_temporary_name(
    name: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    work, temporary = WRITERS[name]
    taken = tmp_path / temporary.format("out")
    make(taken)
    before = contents(tmp_path)
    with pytest.raises(FileExistsError, match=r"this is a (file|folder|link) that structpe did not make") as caught:
        work(tmp_path / "out")
    assert caught.value.filename == str(taken)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", WRITERS)
def test_an_empty_folder_of_a_temporary_name_is_taken_over(name: str, tmp_path: Path) -> None:
    """As a process leaves it that is killed before it has marked it."""
    work, temporary = WRITERS[name]
    (tmp_path / temporary.format("out")).mkdir()
    work(tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("make", FOREIGN, ids=FOREIGN_IDS)
def test_who_sweeps_leaves_what_no_writer_left(make: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    for folder in (tmp_path, tmp_path / "checkpoints"):
        (folder / "inner").mkdir()
        make(folder / ".notes.tmp")
    before = contents(tmp_path)
    with runs.lock(tmp_path):
        pass
    (tmp_path / ".lock").unlink()
    assert contents(tmp_path) == before
    assert left_in(tmp_path) == []
    sweep(tmp_path / "notes")
    assert contents(tmp_path) == before


def test_links_and_folders_in_what_a_killed_writer_left_are_removed_and_not_followed(tmp_path: Path) -> None:
    a_folder(tmp_path / "precious")
    (tmp_path / ".out.tmp" / "new" / "deep").mkdir(parents=True)
    (tmp_path / ".out.tmp" / MARK).touch()
    for place in (tmp_path / ".out.tmp", tmp_path / ".out.tmp" / "new" / "deep"):
        (place / "link").symlink_to(tmp_path / "precious")
        (place / "nowhere").symlink_to("none")
    with lock(tmp_path / "out") as work:
        assert [each.name for each in work.iterdir()] == [MARK]
    assert contents(tmp_path) == {"precious": "folder", "precious/mine": "mine"}


def test_the_encodings_of_a_study_leave_what_is_beside_them(tmp_path: Path) -> None:
    key = store.key(store.fingerprint(GRAPHS), Distance())[:16]
    a_folder(tmp_path / f".distance-{key}.seconds.json.tmp")
    with pytest.raises(FileExistsError, match="did not make"):
        encode(GRAPHS, [Distance()], tmp_path)
    assert (tmp_path / f".distance-{key}.seconds.json.tmp" / "mine").read_text() == "mine"


def test_a_store_with_another_index_of_the_users_stays(tmp_path: Path) -> None:
    (tmp_path / "out.tmp").mkdir()
    (tmp_path / "out.tmp" / "index.json").write_text('{"a": 1}')
    with pytest.raises(FileExistsError, match="did not make"):
        store.write(tmp_path / "out", GRAPHS, [Distance()])
    assert contents(tmp_path / "out.tmp") == {"index.json": '{"a": 1}'}


@pytest.mark.parametrize("there", [True, False])
def test_a_store_is_written_where_a_link_leads(there: bool, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk" / "store")
    if there:
        store.write(tmp_path / "disk" / "store", GRAPHS, [Distance()])
    assert len(store.write(tmp_path / "out", GRAPHS, [Distance()])) == 1
    assert (tmp_path / "out").is_symlink()
    assert [each.name for each in (tmp_path / "disk").iterdir()] == ["store"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_link_that_leads_to_itself_is_refused_before_the_work(name: str, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("out")
    with pytest.raises((OSError, StructPEError), match="leads to itself"):
        WRITERS[name][0](tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_the_root_of_all_folders_is_no_place_for_a_store() -> None:
    with pytest.raises(StructPEError, match=r"^/: this is the root of all folders; give"):
        store.write("/", GRAPHS, [Distance()])


REMOVES = re.compile(r"\b(rmtree|unlink|rmdir|remove_dirs|TemporaryDirectory|mkdtemp|os\.remove)\(")
KNOWN = {
    "cli/demo.py",  # a folder that mkdtemp has made
    "data/store_writer.py",  # shards of an unfinished store, which is marked
    "data/store_index.py",
    "datasets/downloads.py",  # a part with its note
    "datasets/fetching.py",  # an archive that is unpacked
    "pictures/given.py",  # a folder that TemporaryDirectory has made
    "system/files.py",
    "tasks/training/checkpoint.py",  # checkpoints, by their names
    "tasks/training/folder.py",  # what a manifest lists
}
"""Modules that remove files or folders; those above hold all of them to this law, or the tests beside them do."""


def test_nothing_else_removes_files() -> None:
    found: set[Any] = set()
    for file in (ROOT / "structpe").rglob("*.py"):
        if REMOVES.search(file.read_text(encoding="utf-8")):
            found.add(file.relative_to(ROOT / "structpe").as_posix())
    assert found == KNOWN
