"""Every recipe in the experiments can be run: its configurations load, and its models can be built."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from structpe.nn.convolutions import chosen
from structpe.nn.graph_model import GraphModel
from structpe.nn.search import SearchConfig
from structpe.nn.seq2seq import EncoderDecoder
from structpe.positions import build
from structpe.tasks.config import differences
from structpe.tasks.prediction.study import load_study
from structpe.tasks.runs import load_config
from structpe.tasks.runs.text import _shapes
from structpe.tasks.training.optimiser import check_optimiser
from tests.experiments.script import script
from tests.modules import ROOT
from tests.representatives import only

EXPERIMENTS = ROOT / "experiments"
STUDIES = sorted((EXPERIMENTS / "benchmarks").glob("*.yaml"))
TEXTS = [
    (corpus, base)
    for corpus in ("little_prince", "webnlg")
    for base in sorted(file.stem for file in (EXPERIMENTS / "graph_to_text" / corpus).glob("*.yaml"))
    if not base.startswith("models")
]
SIDES = ("encoder", "decoder")
WANTED = {"peptides-long", "minesweeper-tuned", "tolokers-tuned", "roman-empire-tuned", "amazon-ratings-tuned"}
WANTED |= {"questions-tuned", "zinc-deep", "molhiv", "cora", "cora-attention", "knowledge", "wn18rr", "csl"}
WANTED |= {"peptides-gpu", "peptides-tuned", "zinc-gpu", "zinc-tuned", "molhiv-gpu", "molhiv-tuned"}


@pytest.mark.parametrize("layers", only((1, 99), 1))
@pytest.mark.parametrize("file", only(STUDIES, *STUDIES[::2]), ids=lambda file: file.stem)
def test_every_row_of_a_study_can_be_built(file: Path, layers: int) -> None:
    """At most so many layers, as further ones are like the first."""
    study = load_study(file)
    keys = study.keys()
    assert file.stem in study.out
    for key in [key for key in keys if key.seed == study.seeds[0]]:
        config = study.run(key)
        if config.model.message_passing is not None:
            chosen(config.model.message_passing).make(8)  # with values, as classes of PyG are then tried out
        shape = replace(config.model, layers=min(config.model.layers, layers))
        with torch.device("meta"):
            model = GraphModel(shape, build(config.position, shape.dims), None, None, 2)
        assert sum(each.numel() for each in model.parameters()) > 0


def test_there_is_a_recipe_for_each_study() -> None:
    assert {file.stem for file in STUDIES} >= WANTED


@pytest.mark.parametrize("layers", only((1, 99), 1))
@pytest.mark.parametrize("row", only(TEXTS, *TEXTS[::2]), ids="-".join)
def test_every_row_of_texts_has_a_configuration(row: tuple[str, str], layers: int) -> None:
    corpus, base = row
    texts = script("graph_to_text/run.py")
    whole = yaml.safe_load((EXPERIMENTS / "graph_to_text" / corpus / f"{base}.yaml").read_text(encoding="utf-8"))
    for model in texts.MODELS:
        changed = texts.overrides(corpus, base, model, 1, Path("corpora"), Path("out"))
        config = load_config(EXPERIMENTS / "graph_to_text" / corpus / f"{base}.yaml", changed)
        assert config.training.validation.metric == "bleu"
        train = [config.data.train] if isinstance(config.data.train, str) else config.data.train
        assert all(file.startswith("corpora") for file in train)
        assert not {config.data.dev, config.data.test} & set(train)
        check_optimiser(config.training.optimiser)
        assert config.model.width == whole["model"]["width"]
        fewest = {f"{side}_layers": min(getattr(config.model, f"{side}_layers"), layers) for side in SIDES}
        shape = replace(config.model, **fewest)
        with torch.device("meta"):
            given = (config.position, config.decoder_position)
            sides = [build(each, shape.dims(side)) for each, side in zip(given, SIDES, strict=True)]
            assert sum(each.numel() for each in EncoderDecoder(shape, 300, *sides).parameters()) > 0


@pytest.mark.parametrize("kind", ["", "-small"])
def test_a_recipe_that_starts_from_another_has_its_model(kind: str) -> None:
    texts = script("graph_to_text/run.py")
    for model in texts.MODELS:
        first, later = (
            load_config(
                EXPERIMENTS / "graph_to_text" / "little_prince" / f"{base}.yaml",
                texts.overrides("little_prince", base, model, 2, Path("corpora"), Path("out")),
            )
            for base in (f"pretraining{kind}", f"finetuning{kind}")
        )
        assert later.start == first.out == f"out/little_prince-pretraining{kind}/{model}-2"
        assert not [key for key in differences(first, later) if _shapes(key)]


@pytest.mark.slow
def test_a_run_that_starts_from_another_trains_that_one_first(tmp_path: Path) -> None:
    """The recipes as they are, with small graphs in the place of the corpora and three steps each."""
    texts = script("graph_to_text/run.py")
    graphs = (ROOT / "datasets" / "amr_sample" / "train.txt").read_text(encoding="utf-8").split("\n\n")[:12]
    for split in ("train", "dev", "test"):
        paths = texts.recipe("little_prince", "pretraining")["data"][split]
        for path in [paths] if isinstance(paths, str) else paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text("\n\n".join(graphs) + "\n", encoding="utf-8")
    small = ["training.steps=3", "training.validation.every=3", "training.batch_size=4", "model.width=16"]
    small += ["prepare.vocabulary=300", "dev_texts=2", "search.longest=4"]
    given = Namespace(data=tmp_path, out=tmp_path / "runs", results=tmp_path / "results", set=small)
    texts.SEARCH["little_prince"] = SearchConfig(beam=1, longest=4)
    texts.one("little_prince", "finetuning", "graformer", 1, given)
    for base in ("pretraining", "finetuning"):
        (kept,) = texts.kept(f"little_prince-{base}", tmp_path / "results")
        assert (kept["model"], kept["items"], kept["result"]["steps"]) == ("graformer", 12, 3)
