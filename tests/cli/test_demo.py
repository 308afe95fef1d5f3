"""``structpe demo`` says what is so, and needs nothing but what comes with the package."""

from __future__ import annotations

from pathlib import Path

import networkx
import numpy as np
import pytest

from structpe.cli import main
from structpe.errors import MissingExtra
from structpe.tasks import demo
from tests.cli.running import complaint, output


def test_the_positions_are_those_of_the_parse() -> None:
    tree = networkx.Graph(demo.SENTENCE.edges.tolist())
    away = dict(networkx.all_pairs_shortest_path_length(tree))
    root = demo.SENTENCE.nodes.index("lit")
    for place, (word, _, order, depth, *distances) in enumerate(demo.positions()):
        assert (word, order, depth) == (demo.SENTENCE.nodes[place], str(place), str(away[place][root]))
        assert distances == [str(away[place][other]) for other in range(len(distances))]


def test_the_target_is_the_distance_of_the_marked_nodes() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        structure, apart = demo.grown(random)
        one, other = np.flatnonzero(structure.features["x"])
        tree = networkx.Graph(structure.edges.tolist())
        assert networkx.is_tree(tree)
        assert networkx.shortest_path_length(tree, one, other) == apart


@pytest.mark.slow
def test_it_runs_and_keeps_the_model(tmp_path: Path) -> None:
    told = output("demo", "--steps", "2", "--out", tmp_path / "kept")
    assert "1. Where the words" in told
    assert "Mean error after 2 steps" in told
    assert "of 24 texts are exactly what a person wrote." in told
    assert (tmp_path / "kept" / "model.safetensors").is_file()


def test_without_the_extra_the_texts_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*_: object) -> None:
        raise MissingExtra("lightning", "train")

    monkeypatch.setattr(demo, "written", missing)
    assert main.main(["demo", "--steps", "1"]) == 0
    told = capsys.readouterr().out
    needs = "'lightning' is needed for this and is not installed"
    assert told.endswith(f"3. A model that writes texts needs more: pip install 'structpe[train]' ({needs})\n")
    assert "none" in told


def test_wrong_numbers_of_steps() -> None:
    assert complaint("demo", "--steps", "0") == "--steps is 0; give 1 or more"
