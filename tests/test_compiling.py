"""A shorter look at tracing: a model of each kind, and an encoder.

All models, training steps and models of Hugging Face are traced by other slow tests:
positions/test_compile_export.py, nn/test_compiling.py and adapters/test_transformers.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.modules import ROOT

KINDS = ("t5", "sinusoidal shaw rotary")
"""Of attention's scores; of units, of keys and values, of queries."""
PROGRAM = """
import json, sys, warnings
import torch
from structpe.attention.feature_maps import elu_plus_one
from structpe.positions.grit import signed_root
from tests.positions import tracing

warnings.simplefilter("ignore")
names = sys.argv[1:]
found = {f"{how} {name}": tracing.trouble(name, how, tracing.Sites) for how in tracing.HOW for name in names}
if len(names) > 1:
    found["encoder"] = tracing.trouble("t5", "compile", tracing.Whole)
x = torch.tensor([-20.0, -4, -0.25, 0, 9], requires_grad=True)
for function in (elu_plus_one, signed_root):  # they have gradients of their own, which are not traced
    whole = torch.compile(function, fullgraph=True, backend="aot_eager")
    pairs = [(f(x), *torch.autograd.grad(f(x).sum(), x)) for f in (function, whole)]
    torch.testing.assert_close(*pairs, rtol=1e-6, atol=0)
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("names", KINDS)
def test_one_of_each_kind_is_traced(names: str) -> None:
    """In a separate process, because the checks of shapes that tests switch on cannot be traced."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, *names.split()]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == dict.fromkeys(found, "")
    assert len(found) == (2 if names == "t5" else 7)
