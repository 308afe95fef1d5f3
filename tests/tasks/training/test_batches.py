"""The batches are a function of the seed and their number; each epoch has each example once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.data.bpe_dropout import ResampledExamples
from structpe.errors import ConfigError, StoreError
from structpe.tasks.training.batches import Batches, BatchPlan
from tests.examples import examples


@st.composite
def plans(draw: st.DrawFn) -> BatchPlan:
    shares = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(1, 50), min_size=shares, max_size=400))
    return BatchPlan(
        np.array(sizes), draw(st.integers(shares, 40)), draw(st.integers(0, 5)), shares, {}, draw(st.booleans())
    )


@examples(50)
@given(plans(), st.integers(0, 3))
def test_an_epoch_has_each_example_once(plan: BatchPlan, number: int) -> None:
    batches = plan.epoch(number)
    assert len(batches) == plan.per_epoch
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(plan.sizes)))
    lengths = [len(batch) for batch in batches]
    assert max(lengths) - min(lengths) <= 1
    assert max(lengths) <= plan.batch_size or len(plan.sizes) // (plan.per_epoch + 1) < plan.shares


@examples(50)
@given(plans(), st.integers(0, 30), st.integers(0, 30))
def test_the_kth_batch_does_not_depend_on_where_one_begins(plan: BatchPlan, first: int, count: int) -> None:
    whole = list(plan.batches(0, first + count))
    assert [b.tolist() for b in plan.batches(first, first + count)] == [b.tolist() for b in whole[first:]]


@examples(50)
@given(plans())
def test_devices_share_a_batch_out(plan: BatchPlan) -> None:
    count = plan.per_epoch + 2
    whole = BatchPlan(plan.sizes, plan.batch_size, plan.seed, 1, {}, plan.by_size)
    shares = [list(plan.batches(0, count, share)) for share in range(plan.shares)]
    assert all(len(part) for share in shares for part in share)
    if whole.per_epoch == plan.per_epoch:
        for together, *parts in zip(whole.batches(0, count), *shares, strict=True):
            assert sorted(np.concatenate(parts).tolist()) == sorted(together.tolist())


def test_epochs_and_seeds_differ() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return np.concatenate(BatchPlan(np.ones(50, dtype=np.int64), 7, seed).epoch(epoch)).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4


def test_examples_of_like_size_meet() -> None:
    sizes = np.random.default_rng(0).integers(5, 200, 3000)
    padded, random = (
        sum(len(batch) * sizes[batch].max() for batch in BatchPlan(sizes, 32, 1, by_size=by_size).epoch(0))
        for by_size in (True, False)
    )
    assert padded < 1.05 * sizes.sum()
    assert random > 1.7 * sizes.sum()


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_batches_are_fair_samples(seed: int) -> None:
    """Between batches, mean sizes and shares of a label that goes with size vary as those of random samples do."""
    random = np.random.default_rng(seed)
    sizes = random.integers(5, 200, 3200)
    labels = random.random(3200) < sizes / 200
    for values in (sizes, labels):
        expected = values.std() / np.sqrt(32)
        fair, sorted_ = (
            np.std([values[batch].mean() for batch in BatchPlan(sizes, 32, seed, by_size=by_size).epoch(0)])
            for by_size in (False, True)
        )
        assert 0.7 * expected < fair < 1.3 * expected
        assert sorted_ > 2.5 * expected


@examples(30)
@given(plans())
def test_shuffled_batches_do_not_depend_on_sizes(plan: BatchPlan) -> None:
    mixed = BatchPlan(plan.sizes, plan.batch_size, plan.seed, plan.shares)
    alike = BatchPlan(np.ones_like(plan.sizes), plan.batch_size, plan.seed, plan.shares)
    assert [b.tolist() for b in mixed.epoch(1)] == [b.tolist() for b in alike.epoch(1)]
    assert mixed.fingerprint == alike.fingerprint


def test_the_fingerprint_tells_apart_what_gives_other_batches() -> None:
    sizes = np.arange(1, 30)
    made = [BatchPlan(sizes, 4, 1), BatchPlan(sizes, 5, 1), BatchPlan(sizes, 4, 2), BatchPlan(sizes[1:], 4, 1)]
    made += [BatchPlan(sizes, 4, 1, by_size=True), BatchPlan(sizes + 1, 4, 1, by_size=True)]
    assert len({plan.fingerprint for plan in made}) == len(made)


def listed(examples: Sequence[int]) -> list[int]:
    return list(examples)


def loader(workers: int = 0, count: int = 12) -> Batches[int, list[int]]:
    return Batches(list(range(100, 125)), BatchPlan(np.arange(25), 4, 1), listed, count, workers=workers)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_goes_on_where_it_stood(workers: int) -> None:
    whole = list(loader())
    assert len(whole) == len(loader()) == 12
    assert whole == [[100 + i for i in batch] for batch in loader().plan.batches(0, 12)]
    first = loader(workers)
    begun = [batch for batch, _ in zip(first, range(5), strict=False)]
    second = loader(workers)
    second.load_state_dict({**first.state_dict(), "done": 5})
    assert begun + list(second) == whole
    assert second.state_dict()["done"] == 12


class Counted(ResampledExamples[tuple[int, int]]):
    """The epoch and the number of each example."""

    def __len__(self) -> int:
        return 10

    def of(self, epoch: int, numbers: Sequence[int]) -> list[tuple[int, int]]:
        return [(epoch, i) for i in numbers]


def test_examples_are_asked_for_by_epoch_also_where_a_loader_goes_on() -> None:
    """Three batches an epoch, of two devices; the second device goes on after four batches."""
    plan = BatchPlan(np.arange(10), 4, 1, shares=2)
    whole = [list(Batches(Counted(), plan, list, 9, share)) for share in (0, 1)]
    for epoch in range(3):
        seen = [each for share in whole for batch in share[3 * epoch : 3 * epoch + 3] for each in batch]
        assert sorted(seen) == [(epoch, i) for i in range(10)]
    later = Batches(Counted(), plan, list, 9, share=1)
    later.load_state_dict({**later.state_dict(), "done": 4})
    assert list(later) == whole[1][4:]


def test_what_lies_ready_is_not_counted_as_handed_out() -> None:
    ready = loader(workers=2)
    iterator = iter(ready)
    next(iterator)
    assert ready.state_dict()["done"] == 1
    next(iterator)
    assert ready.state_dict()["done"] == 2


@pytest.mark.parametrize("pinned", [False, True])
def test_batches_are_pinned_where_that_is_asked_for(pinned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bool] = []

    def watched(*words: Any, pin_memory: bool, **named: Any) -> list[list[int]]:
        given.append(pin_memory)
        return [[1]]

    monkeypatch.setattr("torch.utils.data.DataLoader", watched)
    batches = Batches(list(range(25)), BatchPlan(np.arange(25), 4, 1), listed, 12, pinned=pinned)
    assert list(batches) == list(batches.of(0)) == [[1]]
    assert given == [pinned, pinned]


def test_other_data_are_refused() -> None:
    state = loader().state_dict()
    other = Batches(list(range(26)), BatchPlan(np.arange(26), 4, 1), listed, 12)
    with pytest.raises(StoreError, match=r"the training data, or the order of .* \(training\.order\), have changed"):
        other.load_state_dict(state)


def test_too_few_examples_for_the_devices() -> None:
    with pytest.raises(ConfigError, match="1 training examples in batches of 8 cannot be shared out to 2 devices"):
        BatchPlan(np.array([3]), 8, 1, shares=2)
