"""A quick look at tracing: one of each kind of what the slow tests trace whole, in one process.

The slow ones: positions/test_compile_export.py, nn/test_compiling.py and adapters/test_transformers.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.modules import ROOT

NAMES = ("sinusoidal", "t5", "shaw", "rotary")
"""Of units, of attention's scores, of keys and values, of queries."""
PROGRAM = f"""
import json, sys, warnings
from tests.adapters import compiling as adapters
from tests.nn import compiling as networks
from tests.positions import tracing

warnings.simplefilter("ignore")
networks.BATCHES = 6
alone = {{how: {{name: tracing.trouble(name, how, tracing.Sites) for name in {NAMES}}} for how in tracing.HOW}}
print(json.dumps([alone, networks.difference("messages"), adapters.difference("bert")]))
"""


@pytest.mark.early
@pytest.mark.timeout(600)
def test_one_of_each_kind_is_traced() -> None:
    """In a separate process, because the checks of shapes that tests switch on cannot be traced."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    alone, (difference, graphs), bert = json.loads(done.stdout.splitlines()[-1])
    assert not {(how, name): why for how, each in alone.items() for name, why in each.items() if why}
    assert difference < 1e-9
    assert graphs == 1
    assert bert["difference"] < 1e-5
    assert (bert["graphs"], bert["breaks"]) == (1, [])
