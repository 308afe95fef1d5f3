"""The command line as a person runs it: as a process, or as the function that the process calls."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib import import_module
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from structpe.cli.main import main
from tests.forking import forked
from tests.modules import ROOT

SAMPLE = ROOT / "datasets" / "amr_sample"
TRAINING = ("lightning.pytorch", "torch.utils.tensorboard")
NEEDED = {
    "demo": (*TRAINING, "structpe.tasks.runs.text"),
    "figure": ("matplotlib.figure", "matplotlib.backends.backend_agg"),
    "parse": ("spacy",),
    "show": ("matplotlib.figure", "matplotlib.backends.backend_agg"),
    "study": (*TRAINING, "structpe.tasks.runs.prediction"),
    "train": (*TRAINING, "structpe.tasks.runs.text"),
}
"""What takes a second or more to import, of commands: once here, not in each fork."""
FORKS = """
import multiprocessing
from structpe.tasks.prediction import run_all
run_all.get_context = lambda how: multiprocessing.get_context("fork")
"""
"""Lets the runs of a study be forks, which begin at once. The tests of survival begin them as users do."""


LEAVING = ("demo", "study", "train")
"""Commands that change their process: numbers of threads and seeds, what is done at a signal."""


def structpe(*words: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``structpe`` with these words: here, unless it leaves something behind, such as imported code; then a fork.

    Importing torch takes longer than most commands, and a fork of a process that has imported much longer than many.
    """
    command = str(words[0]) if words else ""
    if command not in LEAVING and "--import" not in words:
        return _here(*map(str, words), folder=folder or Path.cwd())
    for name in NEEDED.get(command, ()):
        import_module(name)
    before = FORKS if command == "study" else ""
    with TemporaryDirectory() as printed:
        process = forked(Path(printed), "structpe", *map(str, words), cwd=folder or Path.cwd(), before=before)
        code, out, err = process.ended()
    return subprocess.CompletedProcess(words, code, out, err)


def _here(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        chdir(folder),
        patch.dict(os.environ, COLUMNS="100"),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()
        try:
            code = main(words)
        except SystemExit as end:  # as --help ends
            code = int(end.code or 0)
    printed, said = (each.buffer.getvalue().decode() for each in (out, err))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, code, printed, said)


def new_process(*words: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same in a process that imports what it needs, as a person starts it."""
    return subprocess.run(
        [sys.executable, "-m", "structpe", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"},
    )


def output(*words: str | Path, folder: Path | None = None) -> str:
    """What a run that must succeed prints."""
    done = structpe(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def complaint(*words: str | Path, code: int = 2) -> str:
    """The one line of a run that must fail, and leave standard output empty; in this process, which is faster."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        got = main([str(word) for word in words])
    return one_line(got, out.getvalue(), err.getvalue(), code)


def complaint_of_process(*words: str | Path, code: int = 2) -> str:
    """The same of a process."""
    done = new_process(*words)
    return one_line(done.returncode, done.stdout, done.stderr, code)


def one_line(got: int, out: str, err: str, code: int) -> str:
    assert (got, out) == (code, ""), out + err
    assert err.startswith("structpe: "), err
    assert err.count("\n") == 1, err
    return err.removeprefix("structpe: ").rstrip("\n")
