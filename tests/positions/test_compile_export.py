"""torch.compile and torch.export see through every position model, except where its spec says why not.

A model without such a reason must be traced whole, and give the same numbers; one with a reason must still fail.
A few of each kind are traced in tests/test_compiling.py, which is quick.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from structpe.positions import MODELS
from tests.modules import ROOT

pytestmark = pytest.mark.slow


# Sums over pairs have a custom gradient, which again has one: torch.compile does not see through the second.
EDGES = {"compile": "attends to listed pairs by the kernel of edges", "export": ""}


@pytest.mark.timeout(900)  # half a minute on a quiet machine, but all models are in it
@pytest.mark.parametrize("how", ["compile", "export"])
def test_every_model_is_traced_or_says_why_not(how: str) -> None:
    """In a separate process, because the checks of shapes that tests switch on cannot be traced."""
    command = [sys.executable, "-m", "tests.positions.tracing", how]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    reason = {"compile": "not_compiled", "export": "not_exported"}[how]
    reasons = {name: getattr(model.spec, reason) for name, model in MODELS.items()}
    compare(answers["alone"], reasons)
    edges = {name: EDGES[how] if "edges" in kernels else "" for name, kernels in answers["kernels"].items()}
    assert any(edges.values()) == (how == "compile")
    compare(answers["whole"], edges)


def compare(troubles: dict[str, str], reasons: dict[str, str]) -> None:
    """Check that those with a reason cannot be traced, and all others can."""
    assert troubles.keys() == reasons.keys()
    broken = {name: why for name, why in troubles.items() if why and not reasons[name]}
    assert not broken, "\n".join(f"{name}: {why}" for name, why in broken.items())
    mended = [name for name, reason in reasons.items() if reason and not troubles[name]]
    assert not mended, f"these are traced now; take the reason out of their spec: {', '.join(mended)}"
