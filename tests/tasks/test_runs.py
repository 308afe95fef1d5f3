"""Which kind of run a configuration or a folder is of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from structpe.errors import ConfigError, StoreError
from structpe.parsing import Plan
from structpe.plain import to_yaml
from structpe.tasks.config import save
from structpe.tasks.runs import RUNS, load_config, load_run, run_of, train
from structpe.tasks.training.config import TrainingConfig
from tests.tasks.graph_to_text.tiny import tiny
from tests.tasks.prediction.tiny import single


def test_a_configuration_decides_the_kind(tmp_path: Path) -> None:
    assert list(RUNS) == ["graph-to-text", "prediction", "pretrained-text"]
    (tmp_path / "text").mkdir()
    assert run_of(tiny(tmp_path / "text")).name == "graph-to-text"
    run = run_of(single(tmp_path / "graphs"))
    assert (run.name, run.folder) == ("prediction", tmp_path / "graphs" / "run")
    known = "GraphToTextConfig, PredictionConfig, PretrainedTextConfig"
    message = f"TrainingConfig is the configuration of no kind of run; give one of {known}"
    with pytest.raises(ConfigError, match=message):
        run_of(TrainingConfig())


TEXT, GRAPHS = {"data": {"train": "a.txt"}}, {"data": {"name": "card", "folder": "."}}


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (TEXT, "graph-to-text"),
        (GRAPHS, "prediction"),
        (TEXT | {"model": {"pretrained": "small"}}, "pretrained-text"),
        (TEXT | {"task": "graph-to-text"}, "graph-to-text"),
        (GRAPHS | {"task": "prediction"}, "prediction"),
    ],
)
def test_the_task_of_plain_data_and_of_a_file(data: dict[str, Any], kind: str, tmp_path: Path) -> None:
    config = load_config(data, ["training.steps=3"])
    assert (config.task, type(config), config.training.steps) == (kind, RUNS[kind].config_class, 3)
    assert "training" not in data  # what is given stays as it is
    file = tmp_path / "some.yaml"
    file.write_text(to_yaml(data), encoding="utf-8")
    assert load_config(file, ["training.steps=3"]) == config
    save(config, file)  # as a run keeps it
    assert load_config(file) == config


def test_a_task_that_is_none_or_does_not_fit() -> None:
    with pytest.raises(ConfigError, match="task is 'paser'; give one of graph-to-text, prediction, pretrained-text"):
        load_config({**TEXT, "task": "paser"})
    with pytest.raises(ConfigError, match=r"there is no key named 'data\.train'"):
        load_config({**TEXT, "task": "prediction"})
    with pytest.raises(ConfigError, match="overrides change a file or plain data, and a GraphToTextConfig is given"):
        train(load_config(TEXT), ["training.steps=3"])


def test_a_parser_is_a_task_that_spacy_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {
        "task": "parser",
        "data": {"train": "a.conllu"},
        "training": {"steps": 3},
        "language": "en",
    }
    plans = []
    monkeypatch.setattr("structpe.parsing.train", lambda plan, out, report: plans.append((plan, out)))
    assert train({**given, "out": str(tmp_path / "new")}) == tmp_path / "new"
    assert plans == [(Plan(("a.conllu",), (), 3, 0, "en"), str(tmp_path / "new"))]
    with pytest.raises(ConfigError, match="the folder of a parser is not replaced; remove it, or choose another one"):
        train(given, fresh=True)
    train({**given, "data": {"dev": "b.conllu"}}, data=[{"tokens": ["Go"], "heads": [0]}])
    assert plans[1][0] == Plan([{"tokens": ["Go"], "heads": [0]}], ("b.conllu",), 3, 0, "en")
    with pytest.raises(
        ConfigError, match=r"data\.train names files, and sentences are given as data; leave one of the"
    ):
        train(given, data=[])
    with pytest.raises(
        ConfigError, match=r"data\.train is null, and no sentences are given; name a file or folder in C"
    ):
        train({**given, "data": {}})
    with pytest.raises(ConfigError, match="data has the key 'test'; give 'train' and 'dev', or a list of items"):
        train({**given, "data": {}}, data={"test": []})
    with pytest.raises(ConfigError, match=r"there is no key named 'training\.width'"):
        load_config(given, ["training.width=3"])


def test_files_decide_the_kind_of_a_folder_which_may_have_moved(tmp_path: Path) -> None:
    config = single(tmp_path)
    run = run_of(config)
    run.folder.mkdir()
    learned = run.learn(run.read())
    run.begin(learned)
    moved = run.folder.rename(tmp_path / "moved")
    found = load_run(moved)
    assert (found.name, found.config, found.folder, found.restore()) == ("prediction", config, moved, learned)
    assert not found.finished()
    with pytest.raises(StoreError, match=r"model\.safetensors: there is no such file; restore it, or train afresh"):
        found.load()


def test_folders_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"holds no config\.yaml; give the folder of a run, the 'out' of its config"):
        load_run(tmp_path)
    (tmp_path / "config.yaml").write_text("a: 1\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"holds no files of a run of graph-to-text \(tokenizer\.json, .*position\.j"):
        load_run(tmp_path)
    (tmp_path / "positions.json").write_text("{}", encoding="utf-8")
    (tmp_path / "SHA256SUMS").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="the folder is damaged"):
        load_run(tmp_path)
