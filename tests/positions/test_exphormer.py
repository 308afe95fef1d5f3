"""Exphormer: the authors' random graphs from the same generator, and their attention edge by edge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from structpe.attention import attend
from structpe.encodings import Expander
from structpe.encodings.expander import GENERATORS, expander, gap
from structpe.errors import EncodingError
from structpe.positions import MODELS, Dims, Site
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.transforms import with_virtual_node
from tests.golden import golden
from tests.positions.cases import able, made, noise

THEIRS = {"permutations": "generate_random_regular_graph1", "permutation": "generate_random_regular_graph2"}


@pytest.mark.parametrize("algorithm", THEIRS)
def test_the_authors_random_graphs(algorithm: str) -> None:
    given = golden("exphormer_expander")
    edges = GENERATORS[algorithm](10, 3, np.random.default_rng(0))
    both = np.concatenate([edges, edges[:, ::-1]]).T
    assert both.tolist() == given[f"out.{THEIRS[algorithm]}"].tolist()


def test_the_authors_random_rings() -> None:
    given = golden("exphormer_expander")
    edges = GENERATORS["cycles"](10, 3, np.random.default_rng(0))
    both = np.stack([edges, edges[:, ::-1]], axis=1).reshape(-1, 2).T
    assert both.tolist() == given["out.generate_random_graph_with_hamiltonian_cycles"].tolist()


def test_the_gap_of_a_ring_and_of_a_complete_graph() -> None:
    ring = np.array([(i, (i + 1) % 8) for i in range(8)])
    assert gap(ring, 8) == pytest.approx(2 - 2 * np.cos(2 * np.pi / 8))
    assert gap(np.stack(np.triu_indices(7, 1), 1), 7) == pytest.approx(7)


def test_the_gap_of_a_large_graph_is_that_of_its_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = GENERATORS["permutations"](300, 5, np.random.default_rng(1))
    exact = gap(edges, 300)
    monkeypatch.setattr("structpe.encodings.expander._DENSE", 10)
    assert gap(edges, 300) == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("algorithm", GENERATORS)
def test_the_first_graph_with_gap_enough_is_taken(algorithm: str) -> None:
    generator, enough = np.random.default_rng(5), 2 * 3 - 2 * np.sqrt(2 * 3 - 1) - 0.1
    drawn = [GENERATORS[algorithm](40, 3, generator) for _ in range(100)]
    gaps = [gap(edges, 40) for edges in drawn]
    first = next((i for i, found in enumerate(gaps) if found >= enough), int(np.argmax(gaps)))
    assert (expander(40, 3, algorithm, 5, 100) == drawn[first]).all()
    best = expander(40, 3, algorithm, 5, 2)
    assert gap(best, 40) == pytest.approx(max(gaps[:2]) if max(gaps[:1]) < enough else gaps[0])


def test_small_graphs_are_complete() -> None:
    graph = Structure(("x",) * 10, np.zeros((0, 2), dtype=int))
    assert len(Expander().one(graph).listed) == 90
    assert len(Expander(itself=True).one(graph).listed) == 100


def test_pairs_and_their_types() -> None:
    """An edge is never a random one too; the virtual node is joined with everything and has no random edge."""
    graph = Structure(("x",) * 30, [[0, 1], [1, 2], [1, 2], [3, 3]], ("b", "b", "a", "a"))
    whole = with_virtual_node(graph)
    encoding = Expander().fit([graph])
    types = dict(zip(map(tuple, encoding.one(whole).listed.tolist()), _types(encoding, whole), strict=True))
    assert [types[a + 1, b + 1] for a, b in ((0, 1), (1, 0), (1, 2), (2, 1), (3, 3))] == [9, 10, 7, 8, 7]
    assert [types[0, i] for i in range(1, 31)] == [1] * 30
    assert [types[i, 0] for i in range(1, 31)] == [2] * 30
    assert (0, 0) not in types
    others = [pair for pair, kind in types.items() if kind == 0]
    assert len(others) > 200
    assert all(a != b and (b, a) in types for a, b in others)
    assert max(sum(a == node for a, _ in others) for node in range(31)) <= 10


def test_an_undirected_edge_has_one_type_and_a_new_label_the_unknown_one() -> None:
    graph = Structure(("x",) * 20, [[0, 1], [1, 2]], ("a", "b"), directed=False)
    encoding = Expander(labels=("a",))
    types = dict(zip(map(tuple, encoding.one(graph).listed.tolist()), _types(encoding, graph), strict=True))
    assert [types[a, b] for a, b in ((0, 1), (1, 0), (1, 2), (2, 1))] == [7, 7, 5, 5]


def test_units_are_joined_as_their_nodes_are() -> None:
    graph = replace(path("abc"), relations=("r", "r")).with_units(["a", "b", "b", "c"], [0, 1, 1, 2])
    encoding = Expander(labels=("r",))
    types = dict(zip(map(tuple, encoding.one(graph).listed.tolist()), _types(encoding, graph), strict=True))
    assert types[0, 1] == types[0, 2] == types[1, 3] == types[2, 3] == 7
    assert types[1, 2] == types[2, 1] == 4
    assert types[0, 3] == types[3, 0] == 0
    assert (1, 1) not in types


def _types(encoding: Expander, structure: Structure) -> list[int]:
    encoded = encoding.one(structure)
    return encoded.values[encoded.index].tolist()


ABLE = able(frozenset({"product", "act", "pairs"}))


@pytest.mark.parametrize("kernel", ABLE)
def test_the_authors_attention_edge_by_edge(kernel: str) -> None:
    """Messages exp(clip(sum(k * q / sqrt(d) * e))) v along each edge, added up at its end and divided by their sum."""
    structure = with_virtual_node(replace(path("abcdefghijklmn"), relations=("r",) * 13))
    model = made("exphormer", encoding=Expander(labels=("r",), degree=1), width=5)
    terms = model.terms(model.prepare(encode([structure], model.encodings)), Site(1))
    q, k, v = (3 * noise(1, 2, 15, 4, seed=i) for i in range(3))
    total, norm = torch.zeros(2, 15, 4, dtype=torch.float64), torch.zeros(2, 15, dtype=torch.float64)
    encoded = model.encodings[0].one(structure)
    clipped = 0
    for (i, j), row in zip(encoded.listed.tolist(), encoded.index.tolist(), strict=True):
        e = (model.weigh[1].weight @ model.types[encoded.values[row]]).view(2, 4)
        score = (q[0, :, i] * k[0, :, j] / 2 * e).sum(-1)
        clipped += int((score.abs() > 5).sum())
        weight = score.clamp(-5, 5).exp()
        total[:, i] += weight[:, None] * v[0, :, j]
        norm[:, i] += weight
    assert clipped
    torch.testing.assert_close(attend(q, k, v, terms, kernel)[0], total / norm[..., None], rtol=0, atol=1e-9)


def test_what_is_refused() -> None:
    takes = "option 'algorithm' of encoding 'expander' takes one of 'permutations', 'permutation', 'cycles'"
    with pytest.raises(EncodingError, match=f"{takes}; given is 'ring'"):
        Expander(algorithm="ring")
    with pytest.raises(EncodingError, match="degree is 0; give 1 or more"):
        Expander(degree=0)


def test_the_number_of_types_is_that_of_the_table() -> None:
    model = MODELS["exphormer"](Dims(8, 2, 1), encoding=Expander(labels=("a", "b")))
    assert len(model.types) == 11
