"""The batches of a training as a function: which examples the k-th batch holds follows from the seed and k alone.

The only state is k. Resuming continues at k; several devices share each batch.
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
from structpe.data.bpe_dropout import Drawn, of_epoch
from structpe.data.digests import Content, refuse_changed
from structpe.errors import ConfigError, StoreError
from structpe.system.workers import ends_with_its_parent

__all__ = ["BatchPlan", "Batches"]

E = TypeVar("E")
B = TypeVar("B")

CHUNK = 100
"""Batches that are sorted by size together: more leaves less padding, fewer leaves the order more random."""


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """Which examples make up which batch; every example comes once an epoch.

    Each epoch: shuffle all examples, cut into batches, shuffle the batches. By size: shuffle all examples, cut into
    chunks of 100 batches, sort each chunk by size, cut into batches, shuffle the batches. Examples of like size meet
    then, so that little is padded. But a batch is no longer a fair sample: where targets go with sizes, as they do for
    molecules and peptides, its gradient and its statistics (batch normalisation) are of one kind of example.

    Args:
        sizes: (n,) cost of each example, such as its number of units.
        batch_size: examples of a batch, at most; batches of an epoch differ by one at most.
        seed: of the order.
        shares: into how many parts each batch is shared out, one per device.
        content: digests of all training data, so that a run is never resumed with other data.
        by_size: whether examples of like size meet in a batch.

    Raises:
        ConfigError: fewer examples than shares.
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
        """Batches of an epoch."""
        # No batch may be smaller than the shares; as all are of one size but for one example, rounding down may be due.
        count = -(-len(self.sizes) // self.batch_size)
        return count if len(self.sizes) // count >= self.shares else max(1, len(self.sizes) // self.batch_size)

    @computed
    def fingerprint(self) -> str:
        """Tells apart plans that give other batches."""
        sizes = self.sizes.tolist() if self.by_size else len(self.sizes)  # shuffled ones do not depend on sizes
        text = json.dumps([dict(self.content), self.batch_size, self.seed, sizes])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def epoch(self, number: int) -> list[NDArray[np.int64]]:
        """The batches of an epoch, as numbers of examples."""
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
        """Batches first..last-1 of the training, counted over epochs; of each the part of one device."""
        number = -1
        for k in range(first, last):
            if k // self.per_epoch != number:
                number = k // self.per_epoch
                batches = self.epoch(number)
            yield batches[k % self.per_epoch][share :: self.shares]


class Batches(Generic[E, B]):
    """The loader of a training: all its batches, made ready in the background where there are workers.

    Its state is the number of batches handed out, however many lie ready.

    Args:
        examples: the training examples, or those of each epoch.
        plan: which of them make up which batch.
        collate: from examples to a batch.
        count: how many batches the training has.
        share: which part of each batch is this device's.
        workers: processes that collate; 0 collates when asked.
        pinned: whether batches are put where a GPU reads them while it computes.
    """

    def __init__(
        self,
        examples: Sequence[E] | Drawn[E],
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
            _Asked(self.examples),  # type: ignore[arg-type]  # what is asked for by several numbers will do
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
        """How many batches were handed out, of which plan, and of what."""
        return {"done": self.done, "plan": self.plan.fingerprint, "content": dict(self.plan.content)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another stood.

        Raises:
            StoreError: the state is that of other data; what changed is named where that is known.
        """
        refuse_changed(state["content"], self.plan.content)
        if state["plan"] != self.plan.fingerprint:
            raise StoreError(
                "the training data, or the order of their batches (training.order), are not those that this run began "
                "with; bring them back, or train afresh"
            )
        self.done = state["done"]


def _begin(worker: int) -> None:
    del worker
    ends_with_its_parent()


@dataclass(frozen=True)
class _Asked(Generic[E]):
    """What a DataLoader calls a data set; it is asked for all examples of a batch at once."""

    examples: Sequence[E] | Drawn[E]

    def __getitems__(self, asked: tuple[int, list[int]]) -> Sequence[E]:
        return of_epoch(self.examples, *asked)


@dataclass(frozen=True)
class _Numbers:
    """What a DataLoader calls a batch sampler: of each batch its epoch and the numbers of its examples."""

    plan: BatchPlan
    first: int
    last: int
    share: int

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        batches = self.plan.batches(self.first, self.last, self.share)
        return ((k // self.plan.per_epoch, batch.tolist()) for k, batch in enumerate(batches, self.first))

    def __len__(self) -> int:
        return self.last - self.first
