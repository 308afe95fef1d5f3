"""The batches of a training as a function: the examples of the k-th batch depend only on the seed and k.

The only state is k, from which a training resumes. Several devices share each batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from structpe.computed import computed
from structpe.data.bpe_dropout import ResampledExamples, of_epoch
from structpe.data.digests import Content, refuse_changed
from structpe.errors import ConfigError, StoreError
from structpe.system.workers import ends_with_its_parent

__all__ = ["BatchPlan", "Batches"]

E = TypeVar("E")
B = TypeVar("B")

CHUNK = 100
"""Batches that are sorted by size together: more give less padding, fewer a more random order."""


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """The examples of each batch; every example occurs once an epoch.

    In each epoch, all examples are shuffled and cut into batches. By size, the shuffled examples are cut into chunks of
    100 batches, each chunk is sorted by size and cut into batches, and the batches are shuffled. Batches then have
    little padding, but are not fair samples: if targets correlate with sizes, as for molecules and peptides, the
    gradient of a batch and its statistics (batch normalisation) are those of one kind of example.

    Args:
        sizes: (n,) cost of each example, such as its number of units.
        batch_size: largest number of examples per batch; batches of an epoch differ by at most one.
        seed: seed of the order.
        shares: number of parts of each batch, one per device.
        content: digests of all training data; a run is never resumed with other data.
        by_size: whether batches have examples of similar size.

    Raises:
        ConfigError: there are fewer examples than shares.
    """

    sizes: NDArray[np.int64]
    batch_size: int
    seed: int
    shares: int = 1
    content: Content = field(default_factory=dict)
    by_size: bool = False

    def __post_init__(self) -> None:
        if len(self.sizes) < self.shares or self.batch_size < self.shares:
            raise ConfigError(
                f"{len(self.sizes)} training examples in batches of {self.batch_size} cannot be shared out to "
                f"{self.shares} devices; each needs one example per batch at least"
            )

    @computed
    def per_epoch(self) -> int:
        """Number of batches per epoch."""
        # No batch may have fewer examples than there are shares. Batch sizes differ by one, so round down if necessary.
        count = -(-len(self.sizes) // self.batch_size)
        return count if len(self.sizes) // count >= self.shares else max(1, len(self.sizes) // self.batch_size)

    @computed
    def fingerprint(self) -> str:
        """A digest that differs for plans with other batches."""
        sizes = self.sizes.tolist() if self.by_size else len(self.sizes)  # shuffled ones do not depend on sizes
        text = json.dumps([dict(self.content), self.batch_size, self.seed, sizes])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def epoch(self, number: int) -> list[NDArray[np.int64]]:
        """The numbers of the examples of each batch of an epoch."""
        random = np.random.default_rng([self.seed, number])
        order = random.permutation(len(self.sizes))
        cuts = np.linspace(0, len(order), self.per_epoch + 1).astype(np.int64)
        if self.by_size:
            for first in range(0, self.per_epoch, CHUNK):
                mine = cuts[first : first + CHUNK + 1]
                chunk = order[mine[0] : mine[-1]]
                order[mine[0] : mine[-1]] = chunk[np.argsort(self.sizes[chunk], kind="stable")]
        batches = np.split(order, cuts[1:-1])
        return [batches[i] for i in random.permutation(len(batches))]

    def batches(self, first: int, last: int, share: int = 0) -> Iterator[NDArray[np.int64]]:
        """One device's part of the batches first..last-1, counted over all epochs."""
        number = -1
        for k in range(first, last):
            if k // self.per_epoch != number:
                number = k // self.per_epoch
                batches = self.epoch(number)
            yield batches[k % self.per_epoch][share :: self.shares]


class Batches(Generic[E, B]):
    """The data loader of a training, which yields all its batches.

    Its state is the number of batches yielded; prefetched batches do not count.

    Args:
        examples: the training examples, or those of each epoch.
        plan: the examples of each batch.
        collate: makes a batch of examples.
        count: number of batches of the training.
        share: index of this device's part of each batch.
        workers: processes that collate; with 0, this process does.
        pinned: whether batches are in pinned memory, from which a GPU reads while it computes.
    """

    def __init__(
        self,
        examples: Sequence[E] | ResampledExamples[E],
        plan: BatchPlan,
        collate: Callable[[Sequence[E]], B],
        count: int,
        share: int = 0,
        workers: int = 0,
        pinned: bool = False,
    ) -> None:
        self.examples, self.plan, self.collate = examples, plan, collate
        self.count, self.share, self.workers, self.pinned = count, share, workers, pinned
        self.done = 0

    def of(self, share: int) -> Batches[E, B]:
        """The loader of another device."""
        return Batches(self.examples, self.plan, self.collate, self.count, share, self.workers, self.pinned)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[B]:
        from torch import Generator
        from torch.utils.data import DataLoader

        loader: DataLoader[Any] = DataLoader(
            _Fetching(self.examples),  # type: ignore[arg-type]  # DataLoader needs only __getitems__
            batch_sampler=_Numbers(self.plan, self.done, self.count, self.share),  # type: ignore[arg-type]
            collate_fn=self.collate,
            num_workers=self.workers,
            pin_memory=self.pinned,
            worker_init_fn=_begin,
            generator=Generator(),  # its own: making an iterator must not draw from the generator of dropout
        )
        for batch in loader:
            self.done += 1
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """The number of batches yielded, the fingerprint of the plan, and the digests of the data."""
        return {"done": self.done, "plan": self.plan.fingerprint, "content": dict(self.plan.content)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue after the batches of a state.

        Raises:
            StoreError: the state belongs to other data; the error names the changed parts, if known.
        """
        refuse_changed(state["content"], self.plan.content)
        if state["plan"] != self.plan.fingerprint:
            raise StoreError(
                "the training data, or the order of their batches (training.order), have changed since this run began; "
                "restore them, or train afresh"
            )
        self.done = state["done"]


def _begin(worker: int) -> None:
    del worker
    ends_with_its_parent()


@dataclass(frozen=True)
class _Fetching(Generic[E]):
    """The data set of a DataLoader, which fetches all examples of a batch at once."""

    examples: Sequence[E] | ResampledExamples[E]

    def __getitems__(self, asked: tuple[int, list[int]]) -> Sequence[E]:
        return of_epoch(self.examples, *asked)


@dataclass(frozen=True)
class _Numbers:
    """The batch sampler of a DataLoader: the epoch of each batch, and the numbers of its examples."""

    plan: BatchPlan
    first: int
    last: int
    share: int

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        batches = self.plan.batches(self.first, self.last, self.share)
        return ((k // self.plan.per_epoch, batch.tolist()) for k, batch in enumerate(batches, self.first))

    def __len__(self) -> int:
        return self.last - self.first
