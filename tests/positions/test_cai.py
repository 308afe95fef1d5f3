"""Cai and Lam 2020: the authors' numbers, the score written out, and the paths that are drawn in training."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.attention import attend
from structpe.encodings.label_path import LabelPath
from structpe.encodings.order import Offset
from structpe.encodings.trees import Depth
from structpe.errors import PositionError
from structpe.positions import Dims, Positions, Site
from structpe.positions.batch import encode
from structpe.positions.cai import Cai
from structpe.structure import Structure, path
from structpe.terms import Lookup, Terms
from tests.golden import Golden, golden
from tests.positions.cases import TREES, made

# The authors' node CLS does not exist here; one edge label replaces the two labels of its edges.
LABELS = ("<CLS>", "ARG0", "ARG1", "ARG4", "mod")
# Our number of each of theirs: PAD UNK CLS rCLS SELF TL, then the five labels, each with its reverse.
NUMBERS = torch.tensor([-1, 0, 4, 5, 1, 3, 6, 7, 8, 9, 10, 11, 12, 13])
WANT = Structure(
    ("want-01", "boy", "go-02", "-", "city"),
    [(0, 1), (0, 2), (2, 1), (2, 3), (2, 4)],
    ("ARG0", "ARG1", "ARG0", "mod", "ARG4"),
    root=0,
)


def by_hand(given: Golden) -> tuple[Cai, Positions]:
    """A model with the weights of the golden file, and the paths that it was given."""
    dims = Dims(given.cfg["embed_dim"], given.cfg["heads"], 1)
    encoding = LabelPath(LABELS, max_length=8, longer="symbol", paths=4)
    model = Cai(dims, encoding, embedding=given.cfg["rel_dim"], hidden=given.cfg["hidden"]).double().eval()
    w = given.weights("enc.")
    rows = torch.zeros(encoding.size, given.cfg["rel_dim"], dtype=torch.float64)
    rows[NUMBERS[1:]] = w.pop("rel_embed.weight")[1:]
    own = {f"paths.{name.replace('rnn.', 'network.').replace('out_proj', 'out')}": value for name, value in w.items()}
    own |= {"paths.embedding.weight": rows, "split.0.weight": given["w.att.relation_in_proj.weight"]}
    model.load_state_dict(own | {"depths": model.depths})
    values = NUMBERS[given["in.relation_bank"].T][1:, None]  # without the path that is all padding
    index = given["in.relation_eval_ids"][..., 0].permute(2, 1, 0) - 1  # theirs holds the path from column to row
    lookup = Lookup(values, torch.arange(len(values))[None], index)
    return model, Positions({encoding: lookup, model.encodings[1]: given["in.concept_depth"].T})


def projected(given: Golden) -> tuple[Tensor, ...]:
    parts = zip(given["w.att.in_proj_weight"].chunk(3), given["w.att.in_proj_bias"].chunk(3), strict=True)
    x = given["in.x"].transpose(0, 1)
    return tuple(functional.linear(x, w, b).unflatten(-1, (2, -1)).transpose(1, 2) for w, b in parts)


def test_the_authors_vectors_of_paths() -> None:
    given = golden("gtos")
    model, positions = by_hand(given)
    r, _ = model.prepare(positions)
    torch.testing.assert_close(r.table, given["out.rel_vec"][1:], rtol=0, atol=1e-9)
    torch.testing.assert_close(r.dense()[0], given["out.relation_eval"][:, :, 0].transpose(0, 1), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kernel", ["dense", "tables"])
def test_the_authors_attention(kernel: str) -> None:
    given = golden("gtos")
    model, positions = by_hand(given)
    q, k, v = projected(given)
    terms = model.terms(model.prepare(positions), Site(0))
    score = given["out.score"].permute(2, 0, 1)[None]
    expected = torch.softmax(score, dim=-1) @ v
    torch.testing.assert_close(attend(q, k, v, terms, kernel), expected, rtol=0, atol=1e-9)
    w = given.weights("att.out_proj.")
    out = functional.linear(expected.transpose(1, 2).flatten(2), w["weight"], w["bias"])
    torch.testing.assert_close(out.transpose(0, 1), given["out.attn"], rtol=0, atol=1e-9)
    torch.testing.assert_close(torch.softmax(score[0], -1), given["out.weights"][:, :, 0].permute(2, 0, 1))


def test_the_authors_paths_and_depths() -> None:
    given = golden("gtos")
    encoding = LabelPath(LABELS, max_length=8, longer="symbol", paths=4)
    pairs = encoding.one(WANT).pairs()
    for i, row in given.cfg["paths"].items():
        for j, paths in row.items():
            names = [each if each else ["SELF"] for each in paths]
            t, s = (WANT.nodes.index(given.cfg["nodes"][int(place)]) for place in (i, j))
            mine = pairs[t, s]
            assert sorted(_names(p) for p in mine.reshape(-1, mine.shape[-1]) if p[0] >= 0) == sorted(names)
    depths = Depth().one(WANT).values
    assert [depths[WANT.nodes.index(node)] for node in given.cfg["nodes"]] == given.cfg["depths"]


def _names(symbols: np.ndarray) -> list[str]:
    known = {1: "SELF"} | {4 + 2 * i + up: name + "_reverse_" * up for i, name in enumerate(LABELS) for up in (0, 1)}
    return [known[int(s)] for s in symbols if s >= 0]


# --- the definition ---


def test_the_score_is_that_of_moved_queries_and_keys() -> None:
    """(q + a).(k + b) for each pair, a and b from a separate run of the network for each path, without padding."""
    model = made("cai", embedding=3, hidden=5)
    encoding = model.encodings[0]
    q, k = torch.randn(2, 3, 2, 10, 4, dtype=torch.float64).unbind(0)
    terms = model.terms(model.prepare(encode(TREES, model.encodings)), Site(2))
    scores = terms_score(q, k, terms)
    for b, structure in enumerate(TREES):
        values = encoding.one(structure).pairs()
        n = structure.unit_count
        for i in range(n):
            for j in range(n):
                members = values[i, j] if values.ndim == 4 else values[i, j][None]
                r = sum(alone(model, m[m >= 0]) for m in members if m[0] >= 0) / sum(m[0] >= 0 for m in members)
                moved = model.split[2].weight @ r
                for h in range(2):
                    a, c = moved[h * 4 : h * 4 + 4], moved[8 + h * 4 : 12 + h * 4]
                    expected = (q[b, h, i] + a) @ (k[b, h, j] + c) / math.sqrt(4)
                    torch.testing.assert_close(scores[b, h, i, j], expected, rtol=0, atol=1e-9)


def terms_score(q: Tensor, k: Tensor, terms: Terms) -> Tensor:
    """The scores, read out of the dense kernel's meaning of the fields that this model uses."""
    key, query, bias = (field[0].dense().movedim(3, 1) for field in (terms.key, terms.query, terms.bias))
    pairs = (q[:, :, :, None] * (k[:, :, None] + key)).sum(-1) + (query * k[:, :, None]).sum(-1)
    return pairs / math.sqrt(q.shape[-1]) + bias


def alone(model: Cai, symbols: np.ndarray) -> Tensor:
    """U GRU(E[path]) + u, gate by gate, from the numbers of the model."""
    w = dict(model.paths.named_parameters())
    xs = [w["embedding.weight"][int(s)] for s in symbols]
    for layer in range(2):
        forth = _run(xs, w, f"l{layer}")
        back = _run(xs[::-1], w, f"l{layer}_reverse")[::-1]
        xs = [torch.cat(pair) for pair in zip(forth, back, strict=True)]
    return w["out.weight"] @ torch.cat([forth[-1], back[0]]) + w["out.bias"]


def _run(xs: list[Tensor], w: dict[str, Tensor], suffix: str) -> list[Tensor]:
    h, states = torch.zeros(5, dtype=torch.float64), []
    for x in xs:
        ri, zi, ni = (w[f"network.weight_ih_{suffix}"] @ x + w[f"network.bias_ih_{suffix}"]).chunk(3)
        rh, zh, nh = (w[f"network.weight_hh_{suffix}"] @ h + w[f"network.bias_hh_{suffix}"]).chunk(3)
        reset, update = torch.sigmoid(ri + rh), torch.sigmoid(zi + zh)
        h = (1 - update) * torch.tanh(ni + reset * nh) + update * h
        states.append(h)
    return states


# --- several shortest paths ---

# From 0 to 4 lead three shortest ways, two of which have the same labels; from 5 to 6 the same three.
WAYS = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)]
AGAIN = [(5, 7), (5, 8), (5, 9), (7, 6), (8, 6), (9, 6)]
MANY = Structure(tuple("abcdefghij"), WAYS + AGAIN, tuple("xxyxxz") * 2, root=0)


def many() -> tuple[Cai, Positions, Tensor]:
    """A model, the positions of the structure with several paths, and r of its two label sequences from 0 to 4."""
    encoding = LabelPath(max_length=8, longer="symbol", paths=8).fit([MANY])
    torch.manual_seed(0)
    model = Cai(Dims(8, 2, 1), encoding, embedding=3, hidden=5).double()
    lookup = encode([MANY, MANY], [encoding])[encoding]
    positions = Positions({encoding: lookup, model.encodings[1]: torch.zeros(2, 10, dtype=torch.long)})
    both = torch.stack([alone(model, np.array(p)) for p in ([4, 4], [6, 8])])
    return model, positions, both


def test_in_evaluation_it_is_the_mean_of_all_paths() -> None:
    model, positions, (xx, yz) = many()
    before = torch.get_rng_state()
    r = model.eval().prepare(positions)[0].dense()
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(r[0, 0, 4], (2 * xx + yz) / 3, rtol=0, atol=1e-12)
    torch.testing.assert_close(r[1, 5, 6], r[0, 0, 4], rtol=0, atol=0)


@pytest.mark.slow
def test_in_training_it_is_one_path_drawn_for_each_pair() -> None:
    model, positions, both = many()
    model.train()
    drawn = torch.stack([model.prepare(positions)[0].dense()[:, [0, 5], [4, 6]] for _ in range(500)])  # (500, 2, 2, d)
    far = (drawn[..., None, :] - both).abs().amax(-1)
    assert (far.amin(-1) < 1e-12).all(), "each is one of the two"
    first = (far[..., 0] < 1e-12).double().flatten(1)
    # 2/3 of 2,000 draws; the deviation is 0.0105
    assert abs(first.mean() - 2 / 3) < 0.04
    # no pair draws with another: the deviation of each correlation is 1/sqrt(500) = 0.045
    assert torch.corrcoef(first.T).fill_diagonal_(0).abs().max() < 0.18
    single = model.prepare(positions)[0].dense()[0, 0, 1]
    torch.testing.assert_close(single, alone(model, np.array([4])), rtol=0, atol=1e-12)


def test_the_seed_of_torch_decides_the_draw() -> None:
    model, positions, _ = many()
    model.train()
    first, second, third = (_draw(model, positions, seed) for seed in (3, 3, 4))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def _draw(model: Cai, positions: Positions, seed: int) -> Tensor:
    torch.manual_seed(seed)
    drawn: Tensor = model.prepare(positions)[0].dense()
    return drawn


def test_one_path_per_pair_needs_no_draw() -> None:
    encoding = LabelPath(max_length=8, longer="symbol").fit([MANY])
    model = Cai(Dims(8, 2, 1), encoding, embedding=3, hidden=5).train()
    before = torch.get_rng_state()
    positions = encode([MANY], [encoding])
    model.prepare(Positions({**positions, model.encodings[1]: torch.zeros(1, 10, dtype=torch.long)}))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("training", [False, True])
def test_the_network_runs_once_per_distinct_path(training: bool) -> None:
    model, positions, _ = many()
    rows: list[int] = []
    model.paths.register_forward_hook(lambda _, given, __: rows.append(len(given[0])))
    model.train(training).prepare(positions)
    values = model.encodings[0].one(MANY).values
    distinct = {tuple(p.tolist()) for each in values for p in each if p[0] >= 0}
    assert rows == [len(distinct)]


# --- depths and options ---


def test_depths_are_added_to_the_input_and_start_at_zero() -> None:
    encoding = LabelPath(max_length=8, longer="symbol", paths=8).fit([WANT])
    model = Cai(Dims(8, 2, 1), encoding, embedding=3, hidden=5)
    prepared, x = model.prepare(encode([WANT], model.encodings)), torch.randn(1, 5, 8)
    assert torch.equal(model.inputs(x, prepared), x)
    nn.init.normal_(model.depths)
    torch.testing.assert_close(model.inputs(x, prepared)[0] - x[0], model.depths[[0, 1, 1, 2, 2]])


def test_a_depth_beyond_the_table_is_refused() -> None:
    long = path("abcdef")
    model = Cai(Dims(8, 2, 1), LabelPath(max_length=8).fit([long]), embedding=3, hidden=5, depths=5)
    with pytest.raises(PositionError, match="'cai' has 5 depths, this batch needs 6; build it with a larger 'depths'"):
        model.inputs(torch.zeros(1, 6, 8), model.prepare(encode([long], model.encodings)))


def test_the_depth_must_be_of_single_units() -> None:
    with pytest.raises(PositionError, match="'cai' needs an encoding of single units"):
        Cai(Dims(8, 2, 1), depth=Offset())


def test_far_pairs_share_one_symbol() -> None:
    long = path("abcdefghijkl")
    model = made("cai", embedding=3, hidden=5)
    model = Cai(Dims(8, 2, 1), model.encodings[0].fit([long]), embedding=3, hidden=5)
    r = model.eval().prepare(encode([long], model.encodings))[0].dense()[0]
    assert torch.equal(r[0, 9], r[0, 11])
    assert torch.equal(r[0, 9], r[11, 0])
    assert not torch.equal(r[0, 8], r[0, 9])


def test_dropout_is_for_training_only() -> None:
    encoding = LabelPath(max_length=8).fit([WANT])
    model = Cai(Dims(8, 2, 1), encoding, embedding=3, hidden=5, dropout=0.5)
    positions = encode([WANT], model.encodings)
    assert torch.equal(*(model.eval().prepare(positions)[0].table for _ in range(2)))
    assert not torch.equal(*(model.train().prepare(positions)[0].table for _ in range(2)))
