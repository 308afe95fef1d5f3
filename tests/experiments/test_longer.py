"""Tasks of longer and deeper inputs: who has learned a task, what is asked without the end, what COGS's parts are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.experiments.script import script
from tests.modules import ROOT

PAGES = script("pages.py")
LONGER = PAGES.script("catalogue/longer.py")
CORPORA = ROOT.parent / "shared" / "data"


def run(score: float, long: float | None, seed: int) -> dict[str, Any]:
    scores = {"up to 22 actions": score, "24 to 48": long, "24 to 48, end given": 50.0}
    return {"scores": scores, "seed": seed, "parameters": 1234, "cpu minutes": 3.0, "commit": "abc"}


def test_a_model_that_has_not_learned_the_task_is_ranked_with_nobody() -> None:
    models = {
        "weak": [run(94.0, 90.0, seed) for seed in range(3)],
        "bounded": [run(99.0, None, seed) for seed in range(3)],
        "once": [run(100.0, 80.0, 0)],
        "good": [run(96.0, 10.0 + seed, seed) for seed in range(3)],
        "better": [run(96.0, 20.0, seed) for seed in range(3)],
        "slow": [{"why not": "it takes too long"}],
    }
    models["better"][1]["cpu minutes"] = None  # it is not known
    lines = LONGER.made({"scan-length": models, "cogs": {}}).splitlines()[2:]
    assert [line.split("|")[1].strip() for line in lines] == [
        "better", "good", "bounded", "once (not ranked)", "weak (not learned)",
    ]  # fmt: skip
    assert lines[1].split("|")[4].strip() == "11.0 ± 1.0"
    assert lines[2].split("|")[4].strip() == "-"
    assert [line.split("|")[-3].strip() for line in lines[:2]] == ["-", "3.0"]


@pytest.mark.slow
@pytest.mark.skipif(not CORPORA.exists(), reason=f"no corpora in {CORPORA}")
def test_without_the_end_only_actions_count() -> None:
    task = LONGER.ScanLength(CORPORA)
    short, _, given = (examples[0] for examples in task.tests().values())
    assert short.target[-1] == task._numbers["."]
    out = torch.zeros(len(given.units), len(task._numbers))
    asked = given.target >= 0
    out[torch.arange(len(out))[asked], torch.from_numpy(given.target[asked])] = 1.0
    out[:, task._numbers["."]] = 2.0
    assert task.score([out], [given]) == 100
    out[np.flatnonzero(asked)[3], task._numbers["jump"]] = 3.0
    assert task.score([out], [given]) == 0


@pytest.mark.skipif(not CORPORA.exists(), reason=f"no corpora in {CORPORA}")
@pytest.mark.slow
def test_parts_of_cogs() -> None:
    task = LONGER.Cogs(CORPORA)
    tests = task.tests()
    assert [len(examples) for examples in tests.values()] == [500, 1800, 300]
    deepest = {name: max(e.structure.nodes.count("nmod") for e in examples) for name, examples in tests.items()}
    assert deepest == {"in distribution": 2, "words": 2, "structures": 12}
    assert len(task.train) == 24155
    numbers = task._numbers
    assert sorted(numbers.values()) == list(range(len(numbers)))
    assert {numbers["="], numbers["."]} == {0, 1}  # one of them is a word of meanings too
    assert max(int(e.units.max()) for e in task.train) < len(numbers)
    assert max(len(e.units) for e in task.train) <= task.length
