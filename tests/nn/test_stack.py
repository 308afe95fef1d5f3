"""Every position model inside a whole stack: how a batch is laid out, stored or numbered changes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.data import batch as batches
from structpe.data.batch import Batch, EdgeTypes
from structpe.data.features import Categories
from structpe.data.store import write
from structpe.nn.layer import AttentionConfig, StackConfig
from structpe.nn.stack import Stack
from structpe.positions import PositionModel, Positions
from structpe.positions.batch import encode
from structpe.structure import Structure
from structpe.terms import Lookup, Pairs, SparsePairs
from tests.positions.cases import (
    CAUSAL,
    NAMES,
    TERMS,
    TREES,
    Around,
    able,
    causal,
    encoded,
    labelled_path,
    noise,
    seed,
    tolerance,
    used_by,
)
from tests.positions.cases import TWO_LAYERS as DIMS
from tests.positions.cases import of_two_layers as made
from tests.representatives import few, fewer
from tests.strategies import relabelled
from tests.together import together

pytestmark = pytest.mark.usefixtures("coarse_paths")

EDGES = EdgeTypes.fit(TREES)


def stack(model: PositionModel, kernel: str = "auto", convolution: str | None = "gine") -> Stack:
    seed(5)
    config = StackConfig(
        *(DIMS.width, DIMS.layers, DIMS.heads, AttentionConfig(kernel=kernel)),
        message_passing=convolution,
        feedforward=16,
        norm="layer",
        norm_first=True,
    ).beside(model)
    return Stack(config, model, Categories((EDGES.size,))).double().eval()


@cache
def kept(name: str, convolution: str | None = "gine") -> Stack:
    """One stack of each model for all laws here, which leave it as it is."""
    return stack(made(name), convolution=convolution)


@cache
def of_trees(name: str) -> Positions:
    """What the encodings of a model say of the structures here, in float64."""
    return encoded(kept(name).position, TREES)


@cache
def outcome(name: str) -> Tensor:
    """The hidden vectors of all structures, from one batch."""
    with torch.no_grad():
        return run(kept(name), TREES, noise(3, 10, 8))


def run(whole: Stack, structures: list[Structure], x: Tensor) -> Tensor:
    """Hidden vectors (b, n, d) of structures whose units are ``x``, from a flat batch; zeros where there are none."""
    batch = batch_of(whole, structures)
    rows = torch.cat([x[i, : structures[i].unit_count] for i in batch.order.tolist()])
    (padded,) = batch.one_bucket.padded(whole(rows, batch))
    padded = padded * batch.one_bucket.real(0, x.device)[..., None]
    return torch.nn.functional.pad(padded[batch.order.argsort()], (0, 0, 0, x.shape[1] - padded.shape[1]))


def batch_of(whole: Stack, structures: list[Structure]) -> Batch:
    """The batch, with positions in the precision of the model."""
    batch = Batch.of(structures, whole.position.encodings, EDGES, whole.grouping)
    device, dtype = torch.device("cpu"), next(whole.parameters()).dtype
    dtype = torch.float64 if dtype == torch.float64 else torch.float32
    return batch.replaced(positions=tuple(each.to(device, dtype) for each in batch.positions))


def there(structures: list[Structure], n: int) -> Tensor:
    """(b, n) which places hold a unit."""
    return torch.arange(n)[None] < torch.tensor([s.unit_count for s in structures])[:, None]


def real(out: Tensor) -> list[Tensor]:
    return [row[: s.unit_count] for row, s in zip(out, TREES, strict=True)]


ENDS: dict[str, Callable[[Sequence[int], int], list[int]]] = {
    "each alone": lambda sizes, _: list(range(1, len(sizes) + 1)),
    "two buckets": lambda sizes, _: [1, len(sizes)],
    "one bucket": lambda sizes, _: [len(sizes)],
}


@pytest.mark.parametrize("name", fewer(NAMES))
@torch.no_grad()
def test_flat_padded_and_one_by_one_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The law of the one batch: how structures are laid out for attention changes nothing."""
    whole, x = kept(name), noise(3, 10, 8)
    close = partial(torch.testing.assert_close, rtol=0, atol=10 * tolerance(of_trees(name)))
    alone = [run(whole, [s], row[None, : s.unit_count])[0] for s, row in zip(TREES, x, strict=True)]
    for ends in ENDS.values():
        monkeypatch.setattr(batches, "cut", ends)
        for mine, other in zip(real(run(whole, TREES, x)), alone, strict=True):
            close(mine, other)
    plain = kept(name, None)
    padded = plain.padded(x, of_trees(name), there(TREES, 10))
    for mine, other in zip(real(padded), real(run(plain, TREES, x)), strict=True):
        close(mine, other)


@together("name", fewer(NAMES))
@torch.no_grad()
def test_positions_of_one_structure_serve_several_rows(name: str) -> None:
    whole, s = kept(name, None), TREES[1]
    x, present = noise(3, s.unit_count, 8), torch.ones(3, s.unit_count, dtype=torch.bool)
    one, three = encoded(whole.position, [s]), encoded(whole.position, [s] * 3)
    torch.testing.assert_close(whole.padded(x, one, present), whole.padded(x, three, present), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", few(NAMES))
@torch.no_grad()
def test_garbage_in_the_padding_is_seen_by_nobody_and_nothing_is_drawn_at_random(name: str) -> None:
    """Other units, other positions: the largest numbers of the batch, and rows of the wrong structure."""
    whole, x = kept(name, None), noise(3, 10, 8)
    positions = of_trees(name)
    drawn = torch.get_rng_state()
    clean = whole.padded(x, positions, there(TREES, 10))
    assert torch.equal(torch.get_rng_state(), drawn)
    dirty = x.clone()
    for row, s in enumerate(TREES):
        dirty[row, s.unit_count :] = 1e3
    littered = Positions({e: _littered(p) for e, p in positions.items()})
    moved = whole.padded(dirty, littered, there(TREES, 10))
    for a, b in zip(real(moved), real(clean), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def _littered(p: Tensor | Lookup | SparsePairs) -> Tensor | Lookup | SparsePairs:
    """The same at pairs of real units, something else everywhere else."""
    if isinstance(p, SparsePairs):
        counts = torch.tensor([s.unit_count for s in TREES])[:, None, None]
        query, key = torch.arange(10)[:, None], torch.arange(10)
        added = ((query >= counts) | (key >= counts)).nonzero().T
        batch, query, key = (
            torch.cat([mine, more])
            for mine, more in zip((p.pairs.batch, p.pairs.query, p.pairs.key), added, strict=True)
        )
        index = torch.cat([p.index, torch.zeros_like(added[0])])
        return SparsePairs(p.table, index, Pairs(batch, query, key))
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


@pytest.mark.parametrize("name", fewer(NAMES))
@torch.no_grad()
def test_numbering_nodes_otherwise_permutes_the_output(name: str) -> None:
    whole, rng, x = kept(name), np.random.default_rng(0), noise(3, 10, 8)
    new, units = zip(*(relabelled(each, rng.permutation(each.size)) for each in TREES), strict=True)
    moved = x.clone()
    for row, places in enumerate(units):
        moved[row, : len(places)] = x[row, places]
    now, before = run(whole, list(new), moved), outcome(name)
    atol = 10 * tolerance(of_trees(name))
    pairs = ((now[row, : len(places)], before[row, places]) for row, places in enumerate(units))
    assert all(torch.allclose(*pair, rtol=0, atol=atol) for pair in pairs)


@pytest.mark.parametrize("name", fewer(name for name in NAMES if name not in ("nope", "repo")))
@torch.no_grad()
def test_from_a_store_it_says_the_same(name: str, tmp_path: Path) -> None:
    whole, x = deepcopy(kept(name, None)).float(), noise(3, 10, 8)
    store = write(tmp_path / "store", TREES, whole.position.encodings)
    fresh = encode(TREES, whole.position.encodings)
    for encoding, stored in store.positions(range(3)).items():
        other = fresh[encoding]
        for a, b in zip(_tensors(stored), _tensors(other), strict=True):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)
    each = (whole.padded(x.float(), positions, there(TREES, 10)) for positions in (store.positions(range(3)), fresh))
    assert torch.equal(*each)


def _tensors(p: Tensor | Lookup | SparsePairs) -> tuple[Tensor, ...]:
    if isinstance(p, Lookup):
        return p.table, p.rows, p.index
    return (p.table, p.index, p.pairs.batch, p.pairs.query, p.pairs.key) if isinstance(p, SparsePairs) else (p,)


@pytest.mark.slow
def test_kernels_agree_through_all_layers() -> None:
    """Of one model of each set of fields; the tests of the registry ask every model in each kernel."""
    for used, name in {used_by(name): name for name in TERMS}.items():
        fields = used | {"mask"}
        assert len(able(fields)) > 1 or "product" in fields  # which, without pairs, only the reference computes
        with torch.no_grad():
            dense = run(stack(made(name), "dense"), TREES, noise(3, 10, 8))
        for kernel in set(able(fields)) - {"dense"}:
            got = run(stack(made(name), kernel), TREES, noise(3, 10, 8))
            for a, b in zip(real(got), real(dense), strict=True):
                torch.testing.assert_close(a, b, rtol=0, atol=1e-9, msg=lambda text, n=name: f"{n}: {text}")


@pytest.mark.parametrize("name", fewer(CAUSAL))
@torch.no_grad()
def test_steps_with_a_cache_are_rows_of_the_whole_in_every_kernel(name: str) -> None:
    """One query and many keys: shapes that no encoder makes."""
    model, x = made(name), noise(1, 5, 8)
    positions = encoded(model, [labelled_path(5)])
    whole = Around(model, "dense")(positions, x, causal(5))
    for kernel in able(used_by(name)):
        torch.testing.assert_close(Around(model, kernel).steps(positions, x), whole, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", fewer(NAMES))
@torch.no_grad()
def test_a_whole_encoder_in_half_precision(name: str) -> None:
    exact = outcome(name)
    whole = deepcopy(kept(name)).bfloat16()
    half = run(whole, TREES, noise(3, 10, 8).bfloat16())
    assert half.dtype == torch.bfloat16
    for a, b in zip(real(half), real(exact), strict=True):
        assert (a.double() - b).abs().mean() < 0.05 * b.abs().mean()


@pytest.mark.parametrize("name", fewer(NAMES))
def test_under_autocast_it_runs_and_learns(name: str) -> None:
    whole = deepcopy(kept(name)).float()
    with torch.autocast("cpu", torch.bfloat16):
        out = run(whole, TREES, noise(3, 10, 8).float())
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
