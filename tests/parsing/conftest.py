"""A parser of the sample's forty sentences, trained once for all tests, in whichever process they run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from filelock import FileLock

from structpe.parsing import Plan, train
from tests.datasets import SAMPLES

SAMPLE = SAMPLES / "trees_sample" / "sample.conllu"
PLAN = Plan((str(SAMPLE),), steps=6, seed=1, language="en")


@pytest.fixture(scope="session")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where several processes test, the first to ask for it trains it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= "trained"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):
        return folder / "tiny" if (folder / "tiny").exists() else train(PLAN, folder / "tiny")
