"""A module or script in a fork of this process, where what takes seconds to import is imported already."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import torch

from tests.modules import ROOT


@dataclass(frozen=True)
class Forked:
    """A process that runs a module.

    Attributes:
        pid: its number.
        out, err: files of what it prints.
    """

    pid: int
    out: Path
    err: Path

    def ended(self, seconds: float = 200) -> tuple[int, str, str]:
        """Wait for its end: its code, negative where a signal killed it, and what it has printed."""
        end = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status), self.out.read_text(), self.err.read_text()
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(f"it did not end within {seconds} seconds; it said: {self.err.read_text()}")
            time.sleep(0.02)


def forked(folder: Path, what: str, *words: str, cwd: Path = ROOT, before: str = "") -> Forked:
    """Start a module, or a script of the repository, with these words.

    Args:
        folder: what it prints goes to files here.
        what: ``package.module``, or the path of a script.
        words: arguments.
        cwd: the folder that it runs in.
        before: code that it runs first.
    """
    process = folder / "out.txt", folder / "err.txt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # no thread of this process holds anything
        pid = os.fork()
    return Forked(pid, *process) if pid else _run(*process, what, words, cwd, before)


def _run(out: Path, err: Path, what: str, words: tuple[str, ...], cwd: Path, before: str) -> NoReturn:
    code = 1
    try:
        _as_if_new(out, err, cwd)
        sys.argv = [what, *words]
        exec(before, {})
        if "/" in what:
            runpy.run_path(str(ROOT / what), run_name="__main__")
        else:
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # nothing that the tests wanted to do at their end


def _as_if_new(out: Path, err: Path, cwd: Path) -> None:
    """As the interpreter begins a process."""
    os.chdir(cwd)
    os.environ |= {"OMP_NUM_THREADS": "1", "COLUMNS": "100", "TOKENIZERS_PARALLELISM": "false"}
    torch.set_num_threads(1)  # threads do not survive a fork, and waiting for them would never end
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # that of a test is how it talks to those that run others
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    # Where tests run in the background of a shell, Ctrl-C is ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    warnings.resetwarnings()
