"""The script that runs everything on a GPU, tried without one."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

from structpe.tasks.prediction.study import load_study
from tests.experiments.script import script
from tests.modules import ROOT
from tests.tasks.prediction.tiny import molecules

GPU = script("gpu/run.py")
WAITS = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit('told')); print('up', flush=True)\n"
)


def job(name: str, code: str, **how: Any) -> Any:
    return GPU.Job(name, ["-c", code], **how)


def given(corpora: Path, out: Path, **changed: Any) -> Namespace:
    return Namespace(
        **{"corpora": corpora, "out": out, "device": torch.device("cpu"), "quick": True, "minutes": 5.0} | changed
    )


def soon() -> float:
    return time.monotonic() + 60


def test_what_is_done_is_not_done_again_and_what_failed_is(tmp_path: Path) -> None:
    todo = [job("good", "print('hello')"), job("bad", "raise SystemExit(3)"), job("far", "0", needs=tmp_path / "no")]
    first = GPU.work(todo, tmp_path / "out", soon())
    assert first["good"].startswith("done, 0.0 min; ")
    assert first["bad"].startswith("failed, ")
    assert first["far"] == f"left out: there is no {tmp_path / 'no'}"
    assert (tmp_path / "out" / "good.txt").read_text() == "hello\n"
    again = GPU.work([todo[0], job("bad", "0")], tmp_path / "out", soon())
    assert again["good"] == "done before, in 0.0 min"
    assert again["bad"].startswith("done, ")
    assert (tmp_path / "out" / "good.txt").read_text() == "hello\n"
    assert {name: each["state"] for name, each in GPU.done(tmp_path / "out").items()} == {"good": "done", "bad": "done"}


@pytest.mark.slow
def test_when_the_time_is_over_a_job_is_told_to_end_and_goes_on_later(tmp_path: Path) -> None:
    code = WAITS + f"from pathlib import Path; p = Path({str(tmp_path)!r}) / 'again'\n"
    code += "p.exists() or (p.touch(), time.sleep(60))"
    todo = [job("long", code), job("later", "0")]
    began = time.monotonic()
    told = GPU.work(todo, tmp_path / "out", time.monotonic() + 1.5)
    assert time.monotonic() - began < 30
    assert told["long"].startswith("stopped, ")
    assert told["later"] == "no time left; the same call goes on with it"
    assert "told" in (tmp_path / "out" / "long.txt").read_text()
    told = GPU.work(todo, tmp_path / "out", soon())
    assert [how.split(",")[0] for how in told.values()] == ["done", "done"]


@pytest.mark.slow
def test_a_job_that_does_not_hear_is_killed(tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    told = GPU.work([job("deaf", deaf)], tmp_path, time.monotonic() + 1.0, grace=0.2)
    assert told["deaf"].startswith("stopped, ")


def test_after_kernels_that_differ_nothing_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = GPU.work([job("kernels", "raise SystemExit(1)", first=True), job("next", "0")], tmp_path, soon())
    assert list(told) == ["kernels"]
    assert "nothing else is run: what it would compute is not to be trusted" in capsys.readouterr().out


def test_jobs_come_in_the_order_of_their_value(tmp_path: Path) -> None:
    names = [each.name for each in GPU.jobs(given(tmp_path, tmp_path, quick=False))]
    studies = ["peptides", "zinc", "molhiv", "minesweeper"]
    assert names == ["kernels", "encodings", "step", *studies, "webnlg-1", "webnlg-2", "webnlg-3"]


@pytest.mark.parametrize("name", GPU.STUDIES)
def test_studies_are_whole(name: str) -> None:
    """Each run has a configuration, of three seeds at least, and nothing in it wins over --quick."""
    study = load_study(ROOT / "experiments" / "benchmarks" / f"{name}.yaml")
    assert len(study.seeds) >= 3
    assert {study.run(key).training.hardware.accelerator for key in list(study.keys())} <= {"gpu", "auto"}
    assert not any("training" in part for part in (*study.data.values(), *study.models.values()))


def test_without_a_gpu_and_with_unknown_jobs_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["run.py", str(tmp_path)])
    with pytest.raises(SystemExit, match="PyTorch finds no GPU; run it on a machine with CUDA, or try the script with"):
        GPU.main()
    monkeypatch.setattr(sys, "argv", ["run.py", str(tmp_path), "--device", "cpu", "--only", "zink"])
    with pytest.raises(SystemExit, match="there is no job zink; there are kernels, encodings, step, peptides, zinc"):
        GPU.main()


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_a_study_is_run_on_a_cpu_with_a_few_steps(tmp_path: Path) -> None:
    corpora = tmp_path / "corpora"
    (corpora / "zinc12k").mkdir(parents=True)
    molecules(corpora / "zinc12k")
    shell = shutil.which("sh")
    assert shell is not None
    words = [shell, str(ROOT / "experiments" / "gpu" / "run.sh"), str(corpora), "--device", "cpu", "--quick"]
    words += ["--minutes", "4", "--out", str(tmp_path / "out"), "--only", "zinc", "molhiv"]
    for expected in ("done, ", "done before, in "):
        found = subprocess.run(
            words, capture_output=True, text=True, check=True, env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin"}
        )
        zinc, molhiv = found.stdout.splitlines()[-2:]
        assert zinc.startswith(f"zinc       {expected}")
        assert molhiv.startswith("molhiv     left out: there is no ")
    table = (tmp_path / "out" / "zinc-tuned" / "table.md").read_text()
    assert "| gatedgcn | rwse | 1 |" in table
