"""Every command of the table of experiments runs: as it is, or with the smallest sizes that it takes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.modules import ROOT
from tests.tasks.prediction.tiny import molecules

PAGE = ROOT / "experiments" / "README.md"
ELSEWHERE = {
    "catalogue/run.py": "tests/experiments/test_longer.py, and its page by tests/experiments/test_pages.py",
    "gpu/run.sh": "tests/experiments/test_gpu_jobs.py",
    "graph_to_text/run.py": "tests/experiments/test_recipes.py",
    "pretrained/run.py": "tests/experiments/test_pretrained.py",
    "rank/run.py": "tests/experiments/test_rank.py: the command itself writes the figure of the page",
}
"""Commands whose work is run by other tests; here they say what they take."""
SMALL: dict[str, list[str]] = {
    "choose.py": [],
    "expressivity/run.py": ["EMPTY"],
    "faults/run.py": ["--cases", "1"],
    "fuzz/run.py": ["--only", "amr", "--inputs", "20"],
    "pages.py": ["--check"],
    "parameters/run.py": [],
    "roles/run.py": ["--table"],
    "path_law/run.py": [str(ROOT / "datasets" / "trees_sample" / "sample.conllu")],
    "speed/buckets.py": ["--help"],
    "speed/cluster.py": ["HIV.csv", "FOLDER", "--graphs", "100"],
    "speed/compiled.py": ["--only", "texts", "--backend", "eager", "--rounds", "1"],
    "speed/decoding.py": ["--beams", "1", "--rounds", "1", "--rows", "2", "--units", "4"],
    "speed/diet.py": ["--help"],
    "speed/dropout.py": ["--quick", "--rounds", "1"],
    "speed/gps.py": ["--help"],
    "speed/gpu.py": ["--device", "cpu", "--quick", "--rounds", "1", "--only", "probe"],
    "speed/hiv.py": ["HIV.csv", "FOLDER"],
    "speed/imports.py": [],
    "speed/kernels.py": [],
    "speed/linear.py": ["--quick", "--rounds", "1"],
    "speed/pipeline.py": [],
    "speed/propagation.py": [],
    "speed/stores.py": ["FOLDER", "--graphs", "50"],
    "speed/streaming.py": ["FOLDER", "--graphs", "50"],
    "speed/widths.py": ["--device", "cpu", "--structures", "4", "--rounds", "1"],
}
"""The words of each command that is run here."""


def commands() -> set[str]:
    """The scripts of the commands of the page; ``.../x.py`` is one beside the script before it."""
    found, folder = set(), ""
    text = PAGE.read_text(encoding="utf-8")
    for command in re.findall(r"(?:python|sh) experiments/([\w/]+\.(?:py|sh))|`\.\.\./(\w+\.py)", text):
        script = command[0] or f"{folder}/{command[1]}"
        folder = str(Path(script).parent)
        found.add(script)
    return found


def test_every_command_is_run_by_a_test() -> None:
    assert commands() == {*SMALL, *ELSEWHERE}
    for script in commands():
        assert (ROOT / "experiments" / script).is_file()


def run(script: str, words: list[str], folder: Path) -> str:
    command = [sys.executable, str(ROOT / "experiments" / script), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    """What the placeholders of the page stand for."""
    zinc = tmp_path / "corpora" / "zinc12k"
    zinc.mkdir(parents=True)
    molecules(zinc)
    smiles = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CCCCC1", "CCCl"] * 20
    table = "".join(f"{each},CI,{number % 2}\n" for number, each in enumerate(smiles))
    (tmp_path / "HIV.csv").write_text(f"smiles,activity,HIV_active\n{table}", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    folders = {"CORPORA": "corpora", "HIV.csv": "HIV.csv", "FOLDER": "made", "EMPTY": "empty"}
    return {name: str(tmp_path / path) for name, path in folders.items()}


@pytest.mark.slow
@pytest.mark.timeout(1300)
@pytest.mark.parametrize("script", SMALL)
def test_a_command_with_the_smallest_sizes(script: str, given: dict[str, str], tmp_path: Path) -> None:
    run(script, [given.get(word, word) for word in SMALL[script]], tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1300)
@pytest.mark.parametrize(
    "script", [script for script in ELSEWHERE if script.endswith(".py") and not script.startswith("rank")]
)
def test_a_command_says_what_it_takes(script: str, tmp_path: Path) -> None:
    assert run(script, ["--help"], tmp_path).startswith("usage:")
