"""``structpe explain``: the kernel of each layer, and why not the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from structpe.errors import ConfigError
from structpe.tasks.explaining import explain
from tests.cli.running import output

SMALL = ["--model.encoder_layers", "2", "--model.decoder_layers", "1", "--model.width", "16", "--model.heads", "2"]


def test_every_attention_of_a_model_of_text_is_listed() -> None:
    lines = output("explain", "examples/amr.yaml", *SMALL).splitlines()
    assert lines[0] == "amr"
    assert lines[1] == "encoder.layers.0 to encoder.layers.1"
    assert [line.strip() for line in lines if line.startswith("  reads")] == [
        *("reads itself", "reads itself", "reads the source")
    ]
    assert "    edges computes attention with pairs only, which these terms lack" in lines
    assert any(line.startswith("    small; estimated for one core: small ") for line in lines)


@pytest.mark.slow
def test_a_named_kernel_serves_all_layers() -> None:
    (served,) = explain("examples/amr.yaml", ["model.kernel=dense", "model.width=16"]).values()
    assert {each.choice.kernel for each in served if each.reads == "itself"} == {"dense"}
    assert {each.choice.kernel for each in served if each.reads == "the source"} <= {"small", "sdpa"}


def test_runs_of_a_study_and_those_without_attention() -> None:
    found = output("explain", "examples/study.yaml", "--only", "diameters/*/none/*")
    assert found.startswith("diameters/gine/none/seed-0\nno layer asks for a kernel: the model has no attention")
    assert "diameters/transformer/none/seed-0\nstack.layers.0 to stack.layers.1\n" in found


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file .*none.yaml; give the YAML file of a training or of a"):
        explain(tmp_path / "none.yaml")


def test_a_pretrained_model_is_not_explained() -> None:
    with pytest.raises(ConfigError, match="a pretrained model has its own layers, which are not explained; give a"):
        explain("examples/pretrained.yaml")
