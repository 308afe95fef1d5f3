"""The pages of position models and encodings are made from the registries, and what they say to do runs."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from structpe.encodings import ENCODINGS
from structpe.pictures.head_patterns import weights_of
from structpe.pictures.setting import Setting, first_layer
from structpe.plain.yaml import from_yaml
from structpe.positions import MODELS, Dims, build
from tests.modules import ROOT


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("model_pages", ROOT / "docs" / "model_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and caches look it up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def written(pages: ModuleType) -> dict[str, str]:
    folder = Path("pages")
    return {str(file.relative_to(folder)): text for file, text in pages.written(folder).items()}


def test_there_is_a_page_for_each_model_and_encoding(written: dict[str, str]) -> None:
    models = {f"{name}.md" for name in MODELS}
    assert written.keys() == models | {f"encodings/{name}.md" for name in ENCODINGS}


def test_each_page_of_a_model_has_all_parts(written: dict[str, str]) -> None:
    needed = [
        "What it computes",
        "What it takes",
        "In the survey's table",
        "Kernels, decoding, compiling",
        "Use it",
        "Whom to cite",
    ]
    for name in MODELS:
        heads = re.findall(r"^## (.+)$", written[f"{name}.md"], re.MULTILINE)
        assert [head for head in heads if head in needed] == needed, name
        assert "```bibtex\n@" in written[f"{name}.md"], name


def test_the_options_of_a_page_build_the_model(written: dict[str, str]) -> None:
    built = 0
    for name in MODELS:
        config = from_yaml(written[f"{name}.md"].partition("```yaml\n")[2].partition("```")[0])
        assert config["name"] == name
        if all(value is not None for value in config.values()):
            built += build(config, Dims(512, 8, 6)) is not None
    assert built > 100


def test_the_lines_of_use_run(written: dict[str, str]) -> None:
    run = 0
    for name in MODELS:
        _, there, rest = written[f"{name}.md"].partition("```python\n")
        if there:
            names: dict[str, object] = {}
            exec(rest.partition("```")[0], names)
            assert "prepared" in names
            run += 1
    assert run > 120


def test_what_a_page_says_that_a_model_takes_is_so(written: dict[str, str]) -> None:
    rotary, spr, distance = written["rotary.md"], written["spr-rel.md"], written["graphormer.md"]
    assert "| a graph | no: encoding 'order': the structure has no reading order" in rotary
    assert "| a tree | yes |" in spr
    assert "| a grid | no: " in spr
    assert distance.count("| yes |") >= 4
    assert "| a graph | `[0, 1, 2, 2, 1, 2]` |" in written["encodings/undirected-distance.md"]
    assert "[`spr-rel`](../spr-rel.md)" in written["encodings/spr-relative.md"]


@pytest.mark.parametrize("name", ["rotary", "t5", "lap-pe"])
def test_pictures_show_the_weights_of_units_with_the_same_content(pages: ModuleType, name: str, tmp_path: Path) -> None:
    assert pages.draw(name, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 2000
    weights = weights_of(*first_layer(name, Setting(Dims(32, 2, 1), same=True, structure=pages.PARSE)))
    assert torch.allclose(weights.sum(-1), torch.ones(1, 2, 6, dtype=weights.dtype))
    assert float(weights.std(dim=-1).max()) > 1e-3  # positions make a difference


def test_a_model_with_its_own_attention_has_no_picture(pages: ModuleType, tmp_path: Path) -> None:
    assert not pages.draw("lspe", tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
