"""A parser of the sample's forty sentences, trained once for all tests of the room."""

from __future__ import annotations

from pathlib import Path

import pytest

from structpe.parsing import Plan, train
from tests.datasets import SAMPLES

SAMPLE = SAMPLES / "trees_sample" / "sample.conllu"
PLAN = Plan((str(SAMPLE),), steps=20, seed=1, language="en")


@pytest.fixture(scope="session")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(PLAN, tmp_path_factory.mktemp("parser") / "tiny")
