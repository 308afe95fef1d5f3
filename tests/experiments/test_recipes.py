"""Every recipe in the experiments can be run: its configurations load, and its models can be built."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml

from structpe.nn.graph_model import GraphModel
from structpe.positions import build
from structpe.tasks.graph_to_text.config import load_config
from structpe.tasks.prediction.study import load_study
from tests.experiments.script import script
from tests.modules import ROOT

EXPERIMENTS = ROOT / "experiments"
STUDIES = sorted([*(EXPERIMENTS / "benchmarks").glob("*.yaml"), *(EXPERIMENTS / "gpu").glob("*.yaml")])
TEXTS = [
    (corpus, base)
    for corpus in ("little_prince", "webnlg")
    for base in sorted(file.stem for file in (EXPERIMENTS / "graph_to_text" / corpus).glob("*.yaml"))
    if base != "models"
]
WANTED = {"peptides-long", "minesweeper-tuned", "tolokers-tuned", "roman-empire-tuned", "amazon-ratings-tuned"}
WANTED |= {"questions-tuned", "zinc-deep", "molhiv", "cora", "cora-attention", "knowledge", "wn18rr", "csl"}


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_row_of_a_study_can_be_built(file: Path) -> None:
    study = load_study(file)
    keys = study.keys()
    assert file.stem in study.out
    for key in [key for key in keys if key.seed == study.seeds[0]]:
        config = study.run(key)
        with torch.device("meta"):
            model = GraphModel(config.model, build(config.position, config.model.dims), None, None, 2)
        assert sum(each.numel() for each in model.parameters()) > 0


def test_there_is_a_recipe_for_each_study() -> None:
    assert {file.stem for file in STUDIES} >= WANTED


@pytest.mark.parametrize(("corpus", "base"), TEXTS)
def test_every_row_of_texts_has_a_configuration(corpus: str, base: str) -> None:
    texts = script("graph_to_text/run.py")
    for model in texts.MODELS:
        changed = texts.overrides(corpus, model, 1, Path("corpora"), Path("out"))
        config = load_config(EXPERIMENTS / "graph_to_text" / corpus / f"{base}.yaml", changed)
        assert config.training.metric == "bleu"
        assert str(config.data.train).startswith("corpora")
        whole = yaml.safe_load((EXPERIMENTS / "graph_to_text" / corpus / f"{base}.yaml").read_text(encoding="utf-8"))
        assert config.model.width == whole["model"]["width"]
