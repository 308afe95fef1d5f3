"""torch.compile and torch.export see through every position model, but for those named here, with the reason.

A model that is not named must be traced whole, and give the same numbers; one that is must still fail.
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

LENGTHS = "its recurrent network runs over texts packed by their lengths, which are numbers of the batch"
FOLLOWED = "how far its path through the places is followed depends on the batch"
SUMS = "sums over pairs have a custom gradient, which again has one"
NOISE = "how much noise it draws depends on the batch"

NOT_COMPILED = {
    "cai": "a GRU runs over the paths, which torch.compile takes for a break of the graph",
    "dwivedi-neighbours": SUMS,
    "exphormer": SUMS,
    "floater": FOLLOWED,
    "floater-convolution": FOLLOWED,
    "floater-input": FOLLOWED,
    "fourier": "its frequencies are drawn by a separate generator, which cannot be created within a graph",
    "rnn": LENGTHS,
    "rr": LENGTHS,
    "sliding-window": SUMS,
    "spe-conv": NOISE,
    "spe-conv-gated": NOISE,
    "tokengt-orf": NOISE,
}
NOT_EXPORTED = {
    "cai": "a GRU runs over the paths, packed by their lengths, which are numbers of the batch",
    "floater": FOLLOWED,
    "floater-convolution": FOLLOWED,
    "floater-input": FOLLOWED,
    "rnn": LENGTHS,
    "rr": LENGTHS,
    "shaw-absolute": "it gathers the distinct pairs of places, whose number depends on the batch",
    "spe-conv": NOISE,
    "spe-conv-gated": NOISE,
    "tokengt-orf": NOISE,
    "zhu-avg": "it gathers the distinct sets of paths, whose number depends on the batch",
    "zhu-sum": "it gathers the distinct sums of paths, whose number depends on the batch",
}


@pytest.mark.timeout(900)  # half a minute on a quiet machine, but all models are in it
@pytest.mark.parametrize(("how", "exceptions"), [("compile", NOT_COMPILED), ("export", NOT_EXPORTED)])
def test_every_model_is_traced_but_those_named(how: str, exceptions: dict[str, str]) -> None:
    """In a separate process, because the checks of shapes that tests switch on cannot be traced."""
    command = [sys.executable, "-m", "tests.positions.tracing", how]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    troubles: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    assert set(exceptions) <= set(troubles) == set(MODELS)
    broken = {name: why for name, why in troubles.items() if why and name not in exceptions}
    assert not broken, "\n".join(f"{name}: {why}" for name, why in broken.items())
    mended = [name for name in exceptions if not troubles[name]]
    assert not mended, f"these are traced now; take them off the list: {', '.join(mended)}"
