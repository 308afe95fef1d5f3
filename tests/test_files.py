"""Files are whole or absent, whatever happens to their writer."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from structpe.errors import explained
from structpe.system import files
from structpe.system.files import (
    Busy,
    append_line,
    atomic_write,
    atomic_write_folder,
    lock,
    replacing,
    sealed,
    sha256_of,
    unsealed,
)
from tests.killing import every_moment, killed_at
from tests.representatives import only

WRITER = """
import os, signal, sys
from pathlib import Path
from structpe.system.files import atomic_write
def write(hidden):
    hidden.write_text("half of ")
    {}
    hidden.write_text("living")
atomic_write(Path(sys.argv[1]), write)
"""


def put(text: str) -> Any:
    return lambda hidden: hidden.write_text(text)


def two_files(text: str) -> Any:
    def write(hidden: Path) -> None:
        (hidden / "inner").mkdir()
        (hidden / "one").write_text(text)
        (hidden / "inner" / "two").write_text(text)

    return write


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_a_file_and_a_folder_are_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    for text in ("first", "second"):
        atomic_write(tmp_path / "file.txt", put(text))
        atomic_write_folder(tmp_path / "folder", two_files(text))
        assert (tmp_path / "file.txt").read_text() == text
        assert (tmp_path / "folder" / "inner" / "two").read_text() == text
    assert names(tmp_path) == ["file.txt", "folder"]


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    atomic_write(tmp_path / "file", put("before"))

    def fails(hidden: Path) -> None:
        hidden.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atomic_write(tmp_path / "file", fails)
    with pytest.raises(KeyboardInterrupt):
        atomic_write_folder(tmp_path / "folder", lambda hidden: fails(hidden / "inner"))
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "before"


def test_folders_above_a_folder_are_made(tmp_path: Path) -> None:
    atomic_write_folder(tmp_path / "run" / "checkpoints" / "step", two_files("text"))
    assert names(tmp_path / "run" / "checkpoints") == ["step"]


def test_the_hidden_file_has_the_suffix_of_the_place(tmp_path: Path) -> None:
    """Some libraries choose the format by it, or add one of their own."""
    with replacing(tmp_path / "numbers.npz") as hidden:
        np.savez(hidden, a=np.zeros(3))
    assert np.load(tmp_path / "numbers.npz")["a"].shape == (3,)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
def test_what_a_dead_writer_left_is_swept_by_the_next(how: signal.Signals, tmp_path: Path) -> None:
    for _ in range(2):
        died = subprocess.run([sys.executable, "-c", WRITER.format(f"os.kill(os.getpid(), {how})"), tmp_path / "out"])
        assert died.returncode == -how
        assert names(tmp_path) == [".out.tmp"]  # one, however often
    atomic_write(tmp_path / "out", put("whole"))
    assert names(tmp_path) == ["out"]


def test_nothing_of_a_dead_writer_gets_into_what_the_next_one_writes(tmp_path: Path) -> None:
    def dies(hidden: Path) -> None:
        (hidden / "stale").touch()
        os.kill(os.getpid(), signal.SIGKILL)

    assert killed_at(1000, lambda: atomic_write_folder(tmp_path / "folder", dies))
    atomic_write_folder(tmp_path / "folder", two_files("text"))
    assert names(tmp_path / "folder") == ["inner", "one"]


@pytest.mark.parametrize(
    ("platform", "library"),
    [
        ("linux", SimpleNamespace()),
        ("linux", SimpleNamespace(renameat2=lambda *words: -1)),
        ("darwin", SimpleNamespace(renameat2=lambda *words: 0)),
    ],
)
def test_a_folder_is_replaced_where_the_system_cannot_exchange_two(
    platform: str, library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "sys", SimpleNamespace(platform=platform))
    monkeypatch.setattr(files.ctypes, "CDLL", lambda name: library)
    for text in ("first", "second"):
        atomic_write_folder(tmp_path / "folder", two_files(text))
        assert (tmp_path / "folder" / "one").read_text() == text
    assert names(tmp_path) == ["folder"]


def test_a_living_writer_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [sys.executable, "-c", WRITER.format("print(flush=True); input()"), str(tmp_path / "out")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as living:
        assert living.stdout is not None
        living.stdout.readline()
        monkeypatch.setattr(files, "PATIENCE", 0.05)
        with pytest.raises(Busy, match=r"out: another writer is at work there; wait until it has ended, or choose ano"):
            atomic_write(tmp_path / "out", put("mine"))
        with pytest.raises(Busy):
            atomic_write_folder(tmp_path / "out", two_files("mine"))
        assert not (tmp_path / "out").exists()
        living.communicate(b"\n")
    assert living.returncode == 0
    assert (tmp_path / "out").read_text() == "living"
    assert names(tmp_path) == ["out"]


def test_who_has_to_wait_is_told_so_and_is_next(tmp_path: Path) -> None:
    told = threading.Event()
    order = []

    def waits() -> None:
        order.append("told")
        told.set()

    def second() -> None:
        with lock(tmp_path / "out", waits):
            order.append("second")

    with lock(tmp_path / "out"):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(10)
        time.sleep(0.4)
        order.append("first")
    thread.join(10)
    assert order == ["told", "first", "second"]
    assert names(tmp_path) == []


def test_many_writers_of_one_file_leave_one_whole_file(tmp_path: Path) -> None:
    """The lock is removed with each; a second one must never be taken for the first."""
    inside, most, wrong = [0], 80, []

    def write(hidden: Path) -> None:
        inside[0] += 1
        if inside[0] != 1:
            wrong.append(inside[0])
        hidden.write_text("x" * 1000)
        inside[0] -= 1

    def many() -> None:
        for _ in range(most // 4):
            atomic_write(tmp_path / "out", write)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not wrong
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_text() == "x" * 1000


def test_a_folder_that_its_writer_removes_while_it_is_found_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, calls = Path.mkdir, []

    def mkdir(self: Path, *args: Any, **options: Any) -> None:
        if self.name == ".out.tmp":
            calls.append(self)
            if len(calls) < 3:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self))
        made(self, *args, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    atomic_write(tmp_path / "out", put("whole"))
    assert len(calls) >= 3  # the lock, too, makes its folder
    assert (tmp_path / "out").read_text() == "whole"


def test_a_folder_that_goes_while_the_lock_looks_for_it_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``mkdir(exist_ok=True)``, by which the lock makes its folder, is an error if the folder goes meanwhile."""
    made, gone = Path.mkdir, []

    def mkdir(self: Path, *args: Any, **options: Any) -> None:
        if self.name == ".out.tmp" and options.get("exist_ok") and not gone:
            gone.append(self)
            self.rmdir()
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self))
        made(self, *args, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    atomic_write(tmp_path / "out", put("whole"))
    assert gone
    assert (tmp_path / "out").read_text() == "whole"


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, lambda place: place.symlink_to("nowhere")])
def test_what_has_the_name_of_the_hidden_folder_is_named_and_kept(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / ".out.tmp")
    with pytest.raises(FileExistsError, match=r"\.out\.tmp"):
        atomic_write(tmp_path / "out", put("text"))
    assert [path.name for path in tmp_path.iterdir()] == [".out.tmp"]


def test_killed_at_any_moment_a_file_is_the_old_or_the_new(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("old")
    moments = 0
    for _ in every_moment(lambda: atomic_write(place, put("new"))):
        assert place.read_text() in ("old", "new")
        assert set(names(tmp_path)) <= {"file", ".file.tmp"}
        moments += 1
    assert moments > 8
    assert place.read_text() == "new"
    assert names(tmp_path) == ["file"]


@pytest.mark.slow
@pytest.mark.parametrize("exchange", only([True, False], False))
def test_killed_at_any_moment_a_folder_is_the_old_or_the_new(
    exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        monkeypatch.setattr(files, "_exchanged", lambda one, other: False)
    place, absent = tmp_path / "folder", 0
    atomic_write_folder(place, two_files("old"))
    for _ in every_moment(lambda: atomic_write_folder(place, two_files("new"))):
        absent += not place.exists()
        with lock(place):  # the next writer
            pass
        texts = {(place / name).read_text() for name in ("one", "inner/two")}
        assert texts in ({"old"}, {"new"})
        assert names(tmp_path) == ["folder"]
    assert (absent > 0) != exchange
    assert (place / "one").read_text() == "new"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o027, 0o002], ids=oct)
def test_permissions_are_those_of_a_new_file(mask: int, tmp_path: Path) -> None:
    """safetensors makes files that nobody else may read."""
    tensors = {"a": np.zeros(3)}
    with umask(mask):
        atomic_write(tmp_path / "file", lambda hidden: save_file(tensors, hidden))
        atomic_write_folder(tmp_path / "folder", lambda hidden: save_file(tensors, hidden / "inner"))
        (tmp_path / "usual").touch()
        (tmp_path / "usual folder").mkdir()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes["file"] == modes["inner"] == modes["usual"] == 0o666 & ~mask
    assert modes["folder"] == modes["usual folder"]


def test_permissions_of_a_file_beyond_those_stay(tmp_path: Path) -> None:
    """As of a program; but not those of files that a link in a folder leads to."""
    (tmp_path / "other").touch(0o600)

    def write(hidden: Path) -> None:
        (hidden / "program").touch(0o700)
        (hidden / "link").symlink_to(tmp_path / "other")
        (hidden / "nowhere").symlink_to("none")

    with umask(0o022):
        atomic_write_folder(tmp_path / "folder", write)
    assert stat.S_IMODE((tmp_path / "folder" / "program").stat().st_mode) == 0o744
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o600
    assert names(tmp_path / "folder") == ["link", "nowhere", "program"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_file_and_what_is_free(number: int, tmp_path: Path) -> None:
    def full(hidden: Path) -> None:
        hidden.write_text("half")
        raise OSError(number, os.strerror(number))  # as `write` of an open file raises it: without a name

    for write in (atomic_write, atomic_write_folder):
        with pytest.raises(OSError) as caught:  # noqa: PT011, what it says is looked at below
            write(tmp_path / "out.txt", full if write is atomic_write else lambda hidden: full(hidden / "inner"))
        said = explained(caught.value, "")
        free = r": it needs more than the [\d,]+ bytes that are free" if number == errno.ENOSPC else ""
        expected = f"{tmp_path / 'out.txt'}: {os.strerror(number)}{free}; make room, then start the same command again"
        assert re.fullmatch(expected, said)
    assert names(tmp_path) == []


def test_a_file_that_may_not_be_so_large_is_named_also_where_safetensors_writes_it(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        for write in (lambda hidden: hidden.write_bytes(bytes(20_000)), lambda hidden: save_file(LARGE, hidden)):
            with pytest.raises(OSError) as caught:  # noqa: PT011, what it says is looked at below
                atomic_write(tmp_path / "out", write)
            assert caught.value.filename == str(tmp_path / "out")
            assert ".tmp" not in explained(caught.value, "")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path) == []


LARGE = {"a": np.zeros(20_000)}


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_to_is_told_with_the_place(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *args: Any, **options: Any) -> None:
        raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)  # tests may run as root, whom permissions do not bind
    with pytest.raises(OSError) as caught:  # noqa: PT011, what it says is looked at below
        atomic_write(tmp_path / "out.txt", put("text"))
    said = explained(caught.value, "")
    assert said.startswith(f"{tmp_path / 'out.txt'}: its folder cannot be written to ({os.strerror(number)}); ")


def test_errors_of_other_files_keep_their_names(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        atomic_write(tmp_path / "out", lambda hidden: (tmp_path / "source").read_text())
    assert caught.value.filename == str(tmp_path / "source")
    with pytest.raises(FileNotFoundError) as caught:
        atomic_write(tmp_path / "none" / "out", put("text"))
    assert caught.value.filename == str(tmp_path / "none" / "out")


def test_a_folder_is_no_file_and_a_file_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as folder:
        atomic_write(tmp_path / "folder", put("text"))
    with pytest.raises(NotADirectoryError) as file:
        atomic_write_folder(tmp_path / "file", two_files("text"))
    assert (folder.value.filename, file.value.filename) == (str(tmp_path / "folder"), str(tmp_path / "file"))


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_place_without_a_name_is_a_folder(name: str) -> None:
    with pytest.raises(IsADirectoryError):
        atomic_write(Path(name), put("text"))


def test_one_place_has_one_lock_whatever_it_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "PATIENCE", 0.0)
    (tmp_path / "inner").mkdir()
    with lock(Path("out")):
        for name in (tmp_path / "out", Path("inner/../out"), Path("./out")):
            with pytest.raises(Busy):
                atomic_write(name, put("text"))


def test_a_lock_goes_also_where_the_process_has_gone_to_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    with lock(Path("out")) as work:
        monkeypatch.chdir("inner")
        (work / "half").touch()
    assert names(tmp_path) == ["inner"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for name in ("file", "new"):
        (tmp_path / name).symlink_to(tmp_path / "elsewhere" / name)
    (tmp_path / "elsewhere" / "file").write_text("old")
    (tmp_path / "folder").symlink_to(tmp_path / "elsewhere")
    for name in ("file", "new"):
        atomic_write(tmp_path / name, put("text"))
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "elsewhere" / name).read_text() == "text"
    atomic_write_folder(tmp_path / "folder", two_files("text"))
    assert (tmp_path / "folder").is_symlink()
    assert names(tmp_path / "elsewhere") == ["inner", "one"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """So is ``/dev/null``, which root could replace."""
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    atomic_write(tmp_path / "pipe", put("text"))
    reader.join(10)
    assert read == ["text"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_to_a_pipe_is_written_to_as_well(tmp_path: Path) -> None:
    """As ``/dev/stdout`` is one; what it leads to has no name."""
    read, write = os.pipe()
    (tmp_path / "out").symlink_to(f"/dev/fd/{write}")
    atomic_write(tmp_path / "out", put("text"))
    assert os.read(read, 10) == b"text"
    assert (tmp_path / "out").is_symlink()
    for handle in (read, write):
        os.close(handle)


def test_a_line_is_appended_on_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    append_line(file, "first")
    append_line(file, "zwölf")
    file.write_bytes(file.read_bytes()[:-2])  # as a process leaves it that was killed
    append_line(file, "third")
    assert file.read_text(encoding="utf-8") == "first\nzwöl\nthird\n"
    (tmp_path / "empty").touch()
    append_line(tmp_path / "empty", "")
    assert (tmp_path / "empty").read_bytes() == b"\n"


def test_the_checksum_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "abc").write_text("abc")  # the first example of FIPS 180-4
    assert sha256_of(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_flipped_bit_in_a_sealed_text_is_noticed_or_changes_nothing() -> None:
    content = {"format": 2, "names": ["a", "é", 'quoted "name"'], "sizes": [1.5, -0.0, 1e300], "none": None}
    data = sealed(content).encode()
    assert unsealed(data.decode()) == content
    assert json.loads(data).keys() == {*content, "sha256"}
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            try:
                assert unsealed(flipped.decode()) == content
            except ValueError:
                continue


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"a": 1}', '{"a": 1, "sha256": ""}', '{"a": 1, "sha256": null}'])
def test_what_was_not_sealed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"checksum|mapping|Expecting"):
        unsealed(text)


def test_what_writers_left_that_nobody_follows_can_be_swept(tmp_path: Path) -> None:
    for name in ("a.json", ".hidden.json"):
        work = tmp_path / f".{name}.tmp"
        work.mkdir()
        (work / files.MARK).touch()
        (work / "new.json").write_text("half")
    (tmp_path / ".mine.tmp").write_text("a file")
    assert sorted(path.name for path in files.left_in(tmp_path)) == [".hidden.json", "a.json"]
    files.sweep(*files.left_in(tmp_path), tmp_path / "none")
    assert [path.name for path in tmp_path.iterdir()] == [".mine.tmp"]
