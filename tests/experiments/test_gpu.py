"""The script that compares and measures kernels on a GPU, tried without one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from structpe.attention import KERNELS, attend
from structpe.datasets import load
from tests.attention.drawing import HERE
from tests.experiments.script import script
from tests.tasks.prediction.tiny import data_in

GPU = script("speed/gpu.py")


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    with pytest.raises(SystemExit, match=r"PyTorch finds none; run it on a machine with CUDA, or try .* --device cpu"):
        GPU.main()


def test_it_compares_every_kernel_then_measures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--device", "cpu", "--quick"])
    assert GPU.main() == 0
    found = lines(capsys.readouterr().out)
    compared = [each for each in found if each["part"] == "equal"]
    assert {each["kernel"] for each in compared} == set(HERE) - {"dense"}
    assert all(each["same"] and 0 < each["gradients"] < 1e-5 for each in compared)
    timed = {(each["case"], each["way"]) for each in found if each["part"] == "time"}
    assert {(case, way) for case, ways in GPU.WAYS.items() for way in ways if way in HERE} < timed
    assert found[-1]["same"]


def test_a_kernel_that_differs_or_fails_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*given: Any) -> Any:
        raise ValueError("no")

    tiled, sdpa = KERNELS["tiled"], KERNELS["sdpa"]
    monkeypatch.setitem(KERNELS._classes, "tiled", replace(tiled, compute=lambda *given: 1.01 * tiled.compute(*given)))
    monkeypatch.setitem(KERNELS._classes, "sdpa", replace(sdpa, compute=broken))
    assert not GPU.equal(torch.device("cpu"), 8)
    found = lines(capsys.readouterr().out)
    differing = {each["kernel"] for each in found if not each["same"]}
    assert differing >= {"tiled", "sdpa"}
    assert not differing & {"edges", "linear", "small", "tables"}  # others may let these two compute a part
    assert all(each["error"] == "ValueError: no" for each in found if each["kernel"] == "sdpa")
    assert not GPU.measure("scalar bias", 1, 8, torch.device("cpu"), 1)
    ways = lines(capsys.readouterr().out)
    assert [each["way"] for each in ways if each["part"] == "failed"] == ["sdpa"]
    assert {each["way"] for each in ways if each["part"] == "time"} == {"none", "tiled", "embedding"}


@pytest.mark.slow
def test_after_the_minutes_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--device", "cpu", "--quick", "--minutes", "0"])
    assert GPU.main() == 0
    skipped = [each["name"] for each in lines(capsys.readouterr().out) if each["part"] == "skipped"]
    assert skipped == [f"{case}, 64 units" for case in GPU.WAYS]


def test_buckets_become_fewer_as_they_cost_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    buckets = script("speed/buckets.py")
    graphs = load("zinc-stand-in", str(data_in(tmp_path))).graphs[:8]
    case = buckets.gps.Case("rings", graphs, (buckets.gps.ATOMS,), (buckets.gps.BONDS,), 8)
    monkeypatch.setattr(buckets.gps, "cases", lambda corpora, sizes: [case])
    monkeypatch.setattr(buckets, "COSTS", (0, 1 << 20))
    monkeypatch.setattr(sys, "argv", ["buckets.py", str(tmp_path), "--rounds", "1"])
    buckets.main()
    many, one = (line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:])
    assert int(many[3]) == len({graph.size for graph in graphs}) > int(one[3]) == 1


def test_widths_are_compared_and_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    widths = script("speed/widths.py")
    monkeypatch.setattr(widths, "UNITS", 6)
    monkeypatch.setattr(sys, "argv", ["widths.py", "--device", "cpu", "--rounds", "1", "--structures", "2"])
    widths.main()
    _, _, *rows = (line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines())
    assert [row[:2] for row in rows] == [[str(w), d] for d in ("float32", "bfloat16") for w in (16, 19, 23, 24)]
    monkeypatch.setattr(widths, "attend", lambda q, k, v, terms, kernel, dropout: attend(1.1 * q, k, v, terms, kernel))
    with pytest.raises(AssertionError):
        widths.row(8, torch.float32, torch.device("cpu"), 2, 1)


def test_linear_attention_is_compared_and_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = script("speed/linear.py")
    monkeypatch.setattr(sys, "argv", ["linear.py", "--quick"])
    made.main()
    last = capsys.readouterr().out.splitlines()[-1].strip("| ").split(" | ")
    assert last[0] == "1, 4, 2,000, 16"
    assert all(float(each) > 0 for each in last[1:])
    monkeypatch.setattr(made, "theirs", lambda x: 2 * x.exp())
    with pytest.raises(AssertionError):
        made.row((1, 1, 3, 4), made.argparse.Namespace(quick=True, rounds=1))


def test_dropout_is_compared_and_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    made = script("speed/dropout.py")
    monkeypatch.setattr(sys, "argv", ["dropout.py", "--quick"])
    made.main()
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row[:2] for row in lines if row[0] == "8,192"] == [["8,192", "0.1"], ["8,192", "0.5"]]
    assert [row[-1] for row in lines if row[0] == "128, 4, 25, 16"] == ["`small`", "`small`"]
    monkeypatch.setattr(made, "attend", lambda q, k, v, terms, kernel, dropout: attend(1.1 * q, k, v, terms))
    with pytest.raises(AssertionError):
        made.attention((2, 2, 5, 4), 0.5, made.argparse.Namespace(quick=True, rounds=1))
