"""No process outlives the one that started it, however that ends."""

from __future__ import annotations

import ast
import os
import re
import signal
import time
from pathlib import Path

import pytest

from structpe.system.workers import ends_with_its_parent
from tests.forking import forked
from tests.modules import Module, modules
from tests.outliving import KINDS
from tests.processes import alive, descendants, until

SECONDS = 60
"""More than enough for processes to hear that the one that started them has ended."""
SLOW = ("waiting", "encoding", "showing", "training")
STARTS = re.compile(r"\b(subprocess\.\w+|os\.(fork|spawn\w*|system)|Popen|Process|ProcessPoolExecutor|DataLoader)$")
"""Calls that start processes."""
ENDS = {"ends_with_its_parent", "leads_its_group"}
EXCEPT = {"structpe.tasks.prediction.study"}
"""It asks git for the commit, which ends in a moment."""


@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] if k in SLOW else []) for k in KINDS])
def test_processes_end_with_a_killed_parent(kind: str, tmp_path: Path) -> None:
    count = KINDS[kind][1]
    parent = forked(tmp_path, "tests.outliving", kind, str(tmp_path))
    try:
        until(lambda: len(descendants(parent.pid)) >= count or not alive(parent.pid), 3 * SECONDS)
        time.sleep(0.3)  # and perhaps something that keeps track of resources
        children = descendants(parent.pid)
    finally:
        os.kill(parent.pid, signal.SIGKILL)
        os.waitpid(parent.pid, 0)
    assert len(children) >= count, parent.err.read_text()
    until(lambda: not any(map(alive, children)), SECONDS)


def test_whatever_starts_processes_ends_them() -> None:
    starting = {module.name: module for module in modules() if starts(module)}
    assert set(starting) == {
        "structpe.tasks.prediction.run_all",
        "structpe.tasks.prediction.study",
        "structpe.tasks.training.batches",
        "structpe.system.workers",
    }
    assert not {name for name, module in starting.items() if not names(module) & ENDS} - EXCEPT
    assert names(next(m for m in modules() if m.name == "structpe.tasks.training.fit")) & ENDS  # for Lightning's


def starts(module: Module) -> bool:
    """Whether a module starts processes."""
    if not re.search(r"import subprocess|multiprocessing|concurrent|DataLoader|os\.(fork|spawn|system)", module.text):
        return False
    return any(STARTS.search(ast.unparse(each.func)) for each in ast.walk(module.tree) if isinstance(each, ast.Call))


def names(module: Module) -> set[str]:
    """All names that a module uses or defines."""
    defined = {each.name for each in ast.walk(module.tree) if isinstance(each, ast.FunctionDef)}
    return defined | {each.id for each in ast.walk(module.tree) if isinstance(each, ast.Name)}


def test_a_process_without_a_parent_is_left_as_it_is() -> None:
    ends_with_its_parent(lambda: pytest.fail("it is called"))
