"""torch.compile sees through whole training steps, once for batches of all sizes, and gives the same numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.modules import ROOT
from tests.test_docs import blocks

pytestmark = pytest.mark.slow


@pytest.mark.timeout(600)  # a minute on a quiet machine
def test_training_steps_are_compiled_once_without_a_break() -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.nn.compiling"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert "first call the model without compiling, on its device, for the longest text" in found.pop("unknown text")
    kinds = {"hybrid", "messages", "attention along edges", "linear attention", "states of pairs", "texts"}
    assert found.keys() == kinds
    assert max(difference for difference, _ in found.values()) < 1e-9
    assert {name: count for name, (_, count) in found.items()} == dict.fromkeys(found, 1)


@pytest.mark.timeout(600)
def test_the_page_on_compiling_prints_what_it_says() -> None:
    traced = "import functools, torch\ntorch.compile = functools.partial(torch.compile, backend='eager')\n"
    page = [block for block in blocks(ROOT / "docs" / "howto" / "compile.md") if block.language == "python"]
    text = traced + "".join(block.text for block in page)
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == page[-1].output
