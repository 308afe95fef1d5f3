from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from structpe.datasets.expressivity import Pair
from structpe.errors import ConfigError
from structpe.structure import Structure
from tests.experiments.script import script

PROTOCOL = script("benchmarks/brec_protocol.py")
BrecConfig, Verdict = PROTOCOL.BrecConfig, PROTOCOL.Verdict
count, judge, statistic = PROTOCOL.count, PROTOCOL.judge, PROTOCOL.statistic


def ring(*lengths):
    """Circles beside one another."""
    starts = np.cumsum([0, *lengths])
    edges = [(s + i, s + (i + 1) % n) for s, n in zip(starts, lengths, strict=False) for i in range(n)]
    return Structure(("",) * sum(lengths), np.array(edges), directed=False)


TWO_RINGS = Pair("rings", ring(3, 5), ring(4, 4))


class Walks(nn.Module):
    """Closed walks of each node, through a layer, in sum: tells circles of different lengths apart."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 16))

    def forward(self, walks):
        return self.layers(walks).sum(dim=1)


def walks(graphs):
    powers = [[np.linalg.matrix_power(g.adjacency() / 2, k).diagonal() for k in range(2, 8)] for g in graphs]
    return torch.tensor(np.array(powers), dtype=torch.float32).transpose(1, 2)


def degrees(graphs):
    """What message passing sees of circles: nodes of degree two."""
    return torch.tensor(np.array([[[g.adjacency().sum() / g.size] * 6] * g.size for g in graphs]), dtype=torch.float32)


class Numbering(nn.Module):
    """Tells how the nodes are numbered, and so every graph from every other, itself included."""

    def forward(self, graphs):
        torch.manual_seed(int(graphs[0].edges[:2].sum()))
        rows = [torch.randn(16) + torch.tensor(0.0 if i % 2 else 100.0) for i in range(len(graphs))]
        return torch.stack(rows)


def test_the_statistic_is_that_of_hotelling():
    differences = torch.tensor(np.random.default_rng(0).normal(0.2, 1, (32, 16)))
    x = differences.numpy()
    expected = x.mean(axis=0) @ np.linalg.inv(np.cov(x, rowvar=False)) @ x.mean(axis=0)
    assert statistic(differences) == pytest.approx(expected)


def test_the_threshold_is_that_of_five_per_cent():
    q, d = 32, 16
    quantile = stats.f.ppf(0.95, d, q - d)
    assert (q - 1) * d / (q - d) * quantile == pytest.approx(BrecConfig().threshold, abs=0.02)


def test_differences_that_do_not_vary_need_an_epsilon():
    same = torch.full((8, 2), 0.5)
    assert statistic(same) == 0
    assert statistic(same, 1e-3) == pytest.approx(0.5 / 1e-3)


def test_what_a_model_sees_is_told_apart_and_what_it_does_not_see_is_not():
    config = BrecConfig(epochs=3, epsilon=1e-7)
    seen = judge(TWO_RINGS, Walks, walks, config)
    assert (seen.kind, seen.apart, seen.reliable) == ("rings", True, True)
    unseen = judge(TWO_RINGS, Walks, degrees, config)
    assert (unseen.apart, unseen.reliable) == (False, True)


def test_a_model_that_tells_copies_apart_is_not_reliable():
    found = judge(TWO_RINGS, Numbering, lambda graphs: graphs, BrecConfig())
    assert found.control > 72.34
    assert not found.reliable


def test_by_the_paper_the_statistic_is_q_times_that_of_the_code():
    by_code = judge(TWO_RINGS, Walks, walks, BrecConfig(copies=20, epochs=1, batch=8))
    by_paper = judge(TWO_RINGS, Walks, walks, BrecConfig(copies=20, epochs=1, batch=8, by_code=False))
    assert by_paper.statistic == pytest.approx(20 * by_code.statistic)


def test_a_verdict_depends_on_seed_and_number_only():
    config = BrecConfig(epochs=2)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = judge(TWO_RINGS, Walks, walks, config, 3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert judge(TWO_RINGS, Walks, walks, config, 3) == first
    assert judge(TWO_RINGS, Walks, walks, config, 4) != first


def test_graphs_are_given_in_turns_and_once():
    sizes = []

    def prepare(graphs):
        sizes.append([len(np.unique(np.linalg.eigvalsh(g.adjacency()).round(6))) for g in graphs])
        return walks(graphs)

    judge(TWO_RINGS, Walks, prepare, BrecConfig(copies=6, batch=8, epochs=3))
    # Circles of 3 and 5 have four different eigenvalues, two circles of 4 have three.
    assert [len(each) for each in sizes] == [8, 4, 8, 4]
    assert sizes[0] == [4, 3] * 4
    assert len({size for each in sizes[2:] for size in each}) == 1


def test_a_model_is_trained_until_its_loss_is_low():
    steps = []

    class Counted(Walks):
        def forward(self, walks):
            steps.append(self.training)
            return super().forward(walks)

    judge(TWO_RINGS, Counted, walks, BrecConfig(epochs=3, enough=-1))
    assert (steps.count(True), steps.count(False)) == (3 * 4, 2 * 4)
    steps.clear()
    judge(TWO_RINGS, Counted, walks, BrecConfig(epochs=3, enough=2))
    assert steps.count(True) == 4


def test_pairs_are_counted_by_kind():
    told = [Verdict("a", 99, 1, True, True), Verdict("a", 99, 98, True, False), Verdict("b", 1, 1, False, True)]
    assert count(told) == {"a": (2, 2, 1, 1), "b": (1, 0, 0, 0), "all": (3, 2, 1, 1)}


@pytest.mark.parametrize("options", [{"copies": 1}, {"batch": 3}, {"epochs": -1}])
def test_impossible_options_are_refused(options):
    with pytest.raises(ConfigError, match="give 2 copies or more, an even batch, and 0 epochs or more"):
        BrecConfig(**options)


def test_vectors_of_another_shape_are_refused():
    with pytest.raises(ConfigError, match=r"the model returned shape \(16, 8, 6\) for 16 graphs; \(16, d\) is needed"):
        judge(TWO_RINGS, nn.Identity, walks, BrecConfig())


def test_pairs_are_judged_once_and_a_line_that_was_cut_off_again(tmp_path):
    brec = script("pages.py").script("benchmarks/brec.py")
    pairs = [TWO_RINGS._replace(kind="basic"), TWO_RINGS._replace(kind="cfi")]
    brec.run("rwse", pairs, ["basic", "cfi"], tmp_path)
    file = tmp_path / "rwse.jsonl"
    whole = file.read_text()
    assert [number for number, _ in enumerate(whole.splitlines())] == list(brec.judged(file))
    file.write_text(whole[:-30])
    brec.run("rwse", pairs, ["basic", "cfi"], tmp_path)
    again = brec.judged(file)
    assert {number: each for number, (each, _) in again.items()} == {
        0: again[0][0],
        1: Verdict(*(json.loads(whole.splitlines()[1])[field] for field in Verdict._fields)),
    }
    assert "| rwse | 1 of 1 | - | - | - | 1 of 1 | - | - | 2 of 2 | 2 | 0 |" in brec.table(tmp_path)


@pytest.mark.slow
def test_resistance_tells_apart_what_messages_do_not(tmp_path):
    brec = script("pages.py").script("benchmarks/brec.py")
    for position in ("none", "resistance"):
        brec.run(position, [TWO_RINGS._replace(kind="basic")], ["basic"], tmp_path)
    apart = [brec.judged(tmp_path / f"{position}.jsonl")[0][0].apart for position in ("none", "resistance")]
    assert apart == [False, True]


@pytest.mark.parametrize(("found", "alike", "expected"), [(2.3, 0.0, True), (2.2, 0.0, False), (50.0, 2.3, False)])
def test_by_the_paper_a_32nd_of_the_statistic_is_enough(found, alike, expected):
    brec = script("pages.py").script("benchmarks/brec.py")
    assert brec.by_the_paper(Verdict("basic", found, alike, apart=False, reliable=True)) is expected
