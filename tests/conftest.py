"""What holds for every test: the same random numbers each time, one thread, no deadline for an example."""

from __future__ import annotations

import gc
import importlib.util
import operator
import os
import signal
import sys
from collections.abc import Iterator
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.examples import register
from tests.representatives import leave_out_slow, take_turn
from tests.shapes import check_shapes
from tests.skips import pytest_terminal_summary  # noqa: F401  a hook: pytest finds it by its name
from tests.together import anew

check_shapes()

# pytest puts the checkout on the path, as tests import one another, and pages run in folders with one named datasets.
# Such a folder is no package; Hugging Face's Trainer would take it for the one of that name.
if (_found := importlib.util.find_spec("datasets")) is not None and _found.origin is None:
    sys.modules["datasets"] = None  # type: ignore[assignment]

register()
torch.set_num_threads(1)

# A seed is also kept for GPUs, with the trace of who set it, which takes longer than many a test.
if not torch.accelerator.is_available():
    for _module in (torch.cuda, torch.mtia, torch.xpu):
        _module.traceback = SimpleNamespace(format_stack=list)

# Only a machine that loses its power needs the disk to have the bytes, and no test takes that away.
os.fsync = lambda handle: None

# Under nohup SIGHUP is ignored, also by each process that is started, and tests of it would see nothing. A function
# that does nothing serves this process as well, and those that it starts hear the signal. It is one of the standard
# library, as Lightning pickles handlers for its processes.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN or "PYTEST_XDIST_WORKER" in os.environ:
    signal.signal(signal.SIGHUP, operator.is_)


def pytest_runtest_teardown() -> None:
    """What a test imports by ``--import`` or ``imports:`` is not imported by the processes of later tests."""
    os.environ.pop("STRUCTPE_IMPORTS", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--others", type=int, metavar="NUMBER", help="which others laws run on: tests/representatives.py")


def pytest_configure(config: pytest.Config) -> None:
    """All processes of a run take the same models: they are given the options of the first one."""
    config.option.others = take_turn(config.option.others)
    leave_out_slow(config.option.markexpr == "not slow")


def pytest_report_header(config: pytest.Config) -> str:
    return f"laws run on one model of each signature and ten others: --others {config.option.others} repeats them"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests start first, so that at the end no process waits for another one's last test."""
    items.sort(key=lambda item: not any(map(item.get_closest_marker, ("slow", "early"))))


def pytest_collectstart() -> None:
    """Nearly all that is made while tests are collected stays: it is in vain to look for garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Modules and tests live as long as the process: the garbage collector need not look at them, now or later."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def kernels_at_once() -> Iterator[None]:
    """Lists of tests are short, and so NumPy would compute all of them."""
    from structpe.encodings.compiled import at_once  # not above: shapes are checked of what is imported from there on

    with at_once():
        yield


@cache
def _listed() -> list[Any]:
    from structpe.cli.rows import models  # not above: as in kernels_at_once

    return models(16, 2, 2)


@pytest.fixture
def listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands list all models as they were built once, and small: to build large ones takes seconds."""
    listed = _listed()
    monkeypatch.setattr("structpe.cli.rows.models", lambda width, heads, layers: listed)


@pytest.fixture
def coarse_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laws of all models: one step of FLOATER's path for each place, as five take longer than many models."""
    from structpe.positions import absolute as absolute_module

    monkeypatch.setattr(absolute_module, "solve", partial(absolute_module.solve, parts=1))


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """No test depends on those that ran before it."""
    anew()
