"""What a run of graph to text trains and uses: a model, and what makes its examples, batches and texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from structpe.data.bpe_dropout import Drawn, Resplit
from structpe.data.prepare import Preparer
from structpe.formats import Item
from structpe.nn.search import SearchConfig, search
from structpe.nn.seq2seq import EncoderDecoder
from structpe.structure import Structure

__all__ = ["Example", "Writer", "WriterOfUnits"]


class Example(Protocol):
    """A graph and a text for it, prepared for a model."""

    @property
    def structure(self) -> Structure:
        """The graph, with its units."""

    @property
    def ids(self) -> NDArray[Any]:
        """Ids of what is read."""

    @property
    def target(self) -> Any:
        """Ids of the text; None if there is no text."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All reference texts."""

    @property
    def id(self) -> str:
        """Id of the item."""

    @property
    def size(self) -> int:
        """Number of units to read."""

    @property
    def cost(self) -> int:
        """Number of units to read and to write."""


class Writer(ABC):
    """A model that writes texts for graphs.

    Attributes:
        model: what is trained.
        collate: from examples to a batch; it does not hold the model, as it is sent to other processes.
        uses_all: whether every parameter has a part in every loss.
    """

    model: nn.Module
    collate: Callable[[Sequence[Any]], Any]
    uses_all: ClassVar[bool] = True

    @abstractmethod
    def examples(self, items: Iterable[Item], every_text: bool = False, jobs: int = 1) -> Sequence[Example]:
        """Encode items.

        Args:
            items: from a reader.
            every_text: one example per reference text, for training; otherwise one per item, with the first text.
            jobs: processes that encode; the examples do not depend on their number.
        """

    def drawn(self, examples: Sequence[Any], seed: int) -> Sequence[Any] | Drawn[Any]:
        """The training examples as each epoch has them; ``seed`` of what is random in them."""
        del seed
        return examples

    @abstractmethod
    def loss(self, batch: Any, smoothing: float) -> tuple[Tensor, Tensor]:
        """Cross entropy with label smoothing, summed over the units of the texts, and their number."""

    @abstractmethod
    def texts(self, examples: Sequence[Any], config: SearchConfig, device: torch.device) -> list[str]:
        """The text that the model, in evaluation mode and on the device, writes for each of the examples."""

    def rate(self, name: str) -> float:
        """What the learning rate is multiplied by for a parameter of the model."""
        return 1.0


class WriterOfUnits(Writer):
    """A model trained from the beginning, with units of its own.

    Args:
        model: the encoder-decoder.
        preparer: makes its examples and batches.
        device: type of the device that computes.
    """

    def __init__(self, model: EncoderDecoder, preparer: Preparer, device: str = "cpu") -> None:
        self.model: EncoderDecoder = model
        self.preparer = preparer
        self.collate = partial(preparer.collate, grouping=model.encoder.grouping, device=device)

    def examples(self, items: Iterable[Item], every_text: bool = False, jobs: int = 1) -> Sequence[Example]:
        return self.preparer.examples(items, self.model.encoder.position.encodings, every_text, jobs=jobs)

    def drawn(self, examples: Sequence[Any], seed: int) -> Sequence[Any] | Drawn[Any]:
        if not self.preparer.config.bpe_dropout:
            return examples
        return Resplit(examples, self.preparer, self.model.encoder.position.encodings, seed)

    def loss(self, batch: Any, smoothing: float) -> tuple[Tensor, Tensor]:
        return self.model.loss(batch, self.preparer.padding, smoothing)

    def texts(self, examples: Sequence[Any], config: SearchConfig, device: torch.device) -> list[str]:
        batch = self.preparer.collate(examples, grouping=self.model.encoder.grouping, device=device.type).to(device)
        with torch.no_grad():
            state = self.model.start(batch)
            found = search(self.model.step, state, self.preparer.first, self.preparer.last, config)
        texts = dict(zip(batch.order.tolist(), map(self.preparer.text, found), strict=True))
        return [texts[i] for i in range(len(examples))]
