"""torch.compile sees through models of graphs, whole, and gives the same numbers and gradients."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.modules import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.timeout(600)  # half a minute on a quiet machine
def test_models_of_graphs_are_compiled_without_a_break() -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.nn.compiling"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    differences: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    assert len(differences) == 2
    assert max(differences.values()) < 1e-4
