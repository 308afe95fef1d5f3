"""Every position model inside a whole encoder: what is padded, packed, stored or numbered otherwise changes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.data.edges import EdgeTypes
from structpe.data.encode import encode, join
from structpe.data.packing import graphs_of, pack
from structpe.data.store import write
from structpe.errors import UnsupportedTerm
from structpe.nn.encoder import Encoder
from structpe.nn.layers import LayerConfig
from structpe.positions import MODELS, PositionModel, Positions
from structpe.structure import Structure
from structpe.terms import Listed, Lookup, Pairs
from tests.positions.cases import (
    CAUSAL,
    DIMS,
    NAMES,
    TREES,
    Around,
    able,
    causal,
    encoded,
    labelled_path,
    made,
    noise,
    says_where,
    tolerance,
    used,
)
from tests.strategies import relabelled

EDGES = EdgeTypes.fit(TREES)
COUNTS = [
    name
    for name in NAMES
    if MODELS[name].spec.cells.reference != "R" and not any(says_where(made(name), e) for e in made(name).encodings)
]
"""Those that count units as they stand in the row of the batch, because no encoding of theirs says where a unit is."""


def encoder(model: PositionModel, kernel: str = "auto", convolution: str | None = "gine") -> Encoder:
    torch.manual_seed(5)
    config = LayerConfig(DIMS, 16, dropout=0.0, kernel=kernel, convolution=convolution, edge_types=EDGES.size)
    return Encoder(config, model).double().eval()


def run(whole: Encoder, structures: list[Structure], x: Tensor, positions: Positions | None = None) -> Tensor:
    """Hidden vectors (b, n, d) of structures whose units are ``x``."""
    there = torch.arange(x.shape[1])[None] < torch.tensor([s.unit_count for s in structures])[:, None]
    positions = encoded(whole.position, structures) if positions is None else positions
    out: Tensor = whole(x, there, positions, EDGES.join(structures, x.shape[1]))
    return out


def real(out: Tensor) -> list[Tensor]:
    return [row[: s.unit_count] for row, s in zip(out, TREES, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_garbage_in_the_padding_is_seen_by_nobody(name: str) -> None:
    """Other units, other positions: the largest numbers of the batch, and rows of the wrong structure."""
    whole, x = encoder(made(name)), noise(3, 10, 8)
    positions = encoded(whole.position, TREES)
    clean = run(whole, TREES, x, positions)
    dirty = x.clone()
    for row, s in enumerate(TREES):
        dirty[row, s.unit_count :] = 1e3
    moved = run(whole, TREES, dirty, Positions({e: _littered(p) for e, p in positions.items()}))
    for a, b in zip(real(moved), real(clean), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def _littered(p: Tensor | Lookup | Listed) -> Tensor | Lookup | Listed:
    """The same at pairs of real units, something else everywhere else."""
    if isinstance(p, Listed):
        counts = torch.tensor([s.unit_count for s in TREES])[:, None, None]
        query, key = torch.arange(10)[:, None], torch.arange(10)
        added = ((query >= counts) | (key >= counts)).nonzero().T
        batch, query, key = (
            torch.cat([mine, more])
            for mine, more in zip((p.pairs.batch, p.pairs.query, p.pairs.key), added, strict=True)
        )
        index = torch.cat([p.index, torch.zeros_like(added[0])])
        return Listed(p.table, index, Pairs(batch, query, key))
    if isinstance(p, Lookup):
        index, last = p.index.clone(), p.rows.shape[1] - 1
        for row, s in enumerate(TREES):
            index[row, s.unit_count :] = last
            index[row, :, s.unit_count :] = last
        return Lookup(p.table, p.rows, index)
    p = p.clone()
    for row, s in enumerate(TREES):
        p[row, s.unit_count :] = p.max()
    return p


@pytest.mark.parametrize("name", NAMES)
def test_numbering_nodes_otherwise_permutes_the_output(name: str) -> None:
    whole, rng = encoder(made(name)), np.random.default_rng(0)
    for structure in TREES:
        new, units = relabelled(structure, rng.permutation(structure.size))
        x, positions = noise(1, structure.unit_count, 8), encoded(whole.position, [new])
        same = torch.allclose(
            run(whole, [new], x[:, units], positions),
            run(whole, [structure], x)[:, units],
            rtol=0,
            atol=10 * tolerance(positions),
        )
        assert same or name in COUNTS


@pytest.mark.parametrize("name", NAMES)
def test_many_graphs_in_one_row_are_as_one_by_one(name: str) -> None:
    whole, sizes = encoder(made(name), convolution=None), [s.unit_count for s in TREES]
    x = [noise(1, size, 8, seed=i) for i, size in enumerate(sizes)]
    positions = join({e: [pack(e.many(TREES))] for e in whole.position.encodings})
    numbers = graphs_of([sizes])
    if "projection" in used(made(name)):  # mixtures of all keys of a row know no graphs
        with pytest.raises(UnsupportedTerm, match="keys that are mixtures of others cannot be masked for each query"):
            whole(torch.cat(x, dim=1), numbers >= 0, positions, None, numbers)
        return
    together = whole(torch.cat(x, dim=1), numbers >= 0, positions, None, numbers).split(sizes, dim=1)
    same = [
        torch.allclose(mine, run(whole, [s], alone), rtol=0, atol=10 * tolerance(positions))
        for mine, s, alone in zip(together, TREES, x, strict=True)
    ]
    assert all(same)


@pytest.mark.parametrize("name", [n for n in NAMES if made(n).encodings])
def test_from_a_store_it_says_the_same(name: str, tmp_path: Path) -> None:
    whole, x = encoder(made(name)), noise(3, 10, 8)
    store = write(tmp_path / "store", TREES, whole.position.encodings)
    fresh = encode(TREES, whole.position.encodings)
    for encoding, stored in store.positions(range(3)).items():
        other = fresh[encoding]
        for a, b in zip(_tensors(stored), _tensors(other), strict=True):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)
    assert torch.equal(run(whole, TREES, x, store.positions(range(3))), run(whole, TREES, x, fresh))


def _tensors(p: Tensor | Lookup | Listed) -> tuple[Tensor, ...]:
    if isinstance(p, Lookup):
        return p.table, p.rows, p.index
    return (p.table, p.index, p.pairs.batch, p.pairs.query, p.pairs.key) if isinstance(p, Listed) else (p,)


@pytest.mark.parametrize("name", NAMES)
def test_evaluation_draws_nothing_at_random(name: str) -> None:
    whole, x = encoder(made(name)), noise(3, 10, 8)
    before = torch.get_rng_state()
    first = run(whole, TREES, x)
    assert torch.equal(first, run(whole, TREES, x))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_agree_through_all_layers(name: str) -> None:
    expected = run(encoder(made(name), "dense"), TREES, noise(3, 10, 8))
    fields = used(made(name)) | {"mask"}
    assert len(able(fields)) > 1 or "product" in fields  # which, without pairs, no kernel but the reference computes
    for kernel in able(fields):
        got = run(encoder(made(name), kernel), TREES, noise(3, 10, 8))
        for a, b in zip(real(got), real(expected), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", CAUSAL)
def test_steps_with_a_cache_are_rows_of_the_whole_in_every_kernel(name: str) -> None:
    """One query and many keys: shapes that no encoder makes."""
    x = noise(1, 9, 8)
    positions = encoded(made(name), [labelled_path(9)])
    whole = Around(made(name), "dense")(positions, x, causal(9))
    for kernel in able(used(made(name))):
        torch.testing.assert_close(Around(made(name), kernel).steps(positions, x), whole, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_encoder_in_half_precision(name: str) -> None:
    exact = run(encoder(made(name)), TREES, noise(3, 10, 8))
    whole = encoder(made(name)).bfloat16()
    half = run(whole, TREES, noise(3, 10, 8).bfloat16(), encode(TREES, whole.position.encodings))
    assert half.dtype == torch.bfloat16
    for a, b in zip(real(half), real(exact), strict=True):
        assert (a.double() - b).abs().mean() < 0.05 * b.abs().mean()


@pytest.mark.parametrize("name", NAMES)
def test_under_autocast_it_runs_and_learns(name: str) -> None:
    whole = encoder(made(name)).float()
    with torch.autocast("cpu", torch.bfloat16):
        out = run(whole, TREES, noise(3, 10, 8).float(), encode(TREES, whole.position.encodings))
    assert out.isfinite().all()
    out.float().square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in whole.position.parameters())


# --- signs of eigenvectors ---


@contextmanager
def _signs(drawn: tuple[int, ...]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "randint", lambda *_, **__: (torch.tensor(drawn) + 1) // 2)
        yield


def test_signs_of_eigenvectors_do_not_matter_on_average_in_training() -> None:
    """What may be drawn, as a set, is the same whichever sign a solver gave; in evaluation the sign does count."""
    model = made("dwivedi")
    encoding, x = model.encodings[0], noise(3, 10, 8)
    vectors = encoded(model, TREES)[encoding][..., :3]
    model.embed.weight.data = model.embed.weight.data[:, :3].contiguous()
    flipped = vectors * torch.tensor([1.0, -1.0, -1.0])

    def outcome(given: Tensor) -> Tensor:
        return model.inputs(x, model.prepare(Positions({encoding: given})))

    assert not torch.allclose(outcome(vectors), outcome(flipped))
    model.train()
    drawn: list[list[Tensor]] = [[], []]
    for signs in itertools.product((-1, 1), repeat=3):
        with _signs(signs):
            for seen, given in zip(drawn, (vectors, flipped), strict=True):
                seen.append(outcome(given))
    for one in drawn[0]:
        assert any(torch.equal(one, other) for other in drawn[1])
