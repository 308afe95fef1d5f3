"""Prepare items for a text model: form of the graph, vocabulary, units, encodings, batches."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.data.batch import Batch, EdgeTypes, Example, Grouping, collate
from structpe.data.chunks import columns
from structpe.encodings.base import Encoded, Encoding
from structpe.errors import StoreError, StructureError, needing, undamaged
from structpe.formats import Item
from structpe.plain.options import UNITS, VOCABULARY, bounded, check_shares
from structpe.structure import Structure
from structpe.system.files import atomic_text, atomic_write
from structpe.transforms.nodes import levi
from structpe.transforms.texts import linearise, with_readable_labels
from structpe.transforms.units import split

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = [
    "FIRST",
    "LAST",
    "PADDING",
    "SMALLEST",
    "SPECIALS",
    "UNKNOWN",
    "PrepareConfig",
    "Preparer",
    "StructureWithText",
    "train_vocabulary",
]

PADDING, UNKNOWN, FIRST, LAST = "<pad>", "<unk>", "<s>", "</s>"
SPECIALS = (PADDING, UNKNOWN, FIRST, LAST)
SMALLEST = 256 + len(SPECIALS)
"""Size of the smallest vocabulary: all bytes and the special units."""


def train_vocabulary(texts: Iterable[str], relations: Sequence[str], size: int, lowercase: bool = False) -> Tokenizer:
    """Byte-level BPE (Sennrich et al. 2016) over texts and node labels.

    With bytes, any text can be encoded and decoded exactly. Each relation label that appears at least twice is one
    unit.

    Args:
        texts: texts and node labels.
        relations: relation labels, one per occurrence.
        size: number of units, including special units and relations.
        lowercase: whether texts are lowercased.

    Raises:
        MissingExtra: ``tokenizers`` is not installed.
    """
    with needing("tokenizers", "text"):
        from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), *([normalizers.Lowercase()] if lowercase else [])])
    # A space before each label and text: a word is then the same unit at the start and inside.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    frequent = sorted(relation for relation, times in Counter(relations).items() if relation and times > 1)
    trainer = trainers.BpeTrainer(
        vocab_size=max(size - len(frequent), SMALLEST),
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(relation, single_word=True, normalized=False) for relation in frequent])
    return tokenizer


TRAIN_AFRESH = "restore it, or train afresh (fresh)"
"""Advice if a file of a run is damaged."""

Graph: TypeAlias = Literal["plain", "levi", "linear"]


@dataclass(frozen=True)
class PrepareConfig:
    """How items are prepared.

    Args:
        graph: ``plain`` as read, relations on the edges; ``levi`` with relations as nodes; ``linear`` as the token
            sequence of a depth-first walk.
        labels: ``readable`` writes node labels as words (``want-01`` as "want"); ``raw`` leaves them.
        vocabulary: number of subword units, shared by graphs and texts, trained on the training split; at least one
            for each byte and four special ones.
        lowercase: whether texts are lowercased.
        bpe_dropout: probability that a merge of subwords is left out, in training only: each epoch reads and writes
            other units (Provilkov et al. 2020, who take 0.1). 0 for the same units always.
        longest_source: a structure with more units is an error; nothing is truncated.
        longest_target: longer texts are left out of training; their number is reported.
    """

    graph: Graph = "levi"
    labels: Literal["readable", "raw"] = "readable"
    vocabulary: int = 4000
    lowercase: bool = False
    bpe_dropout: float = 0.0
    longest_source: int = 512
    longest_target: int = 256

    def __post_init__(self) -> None:
        length = (1, UNITS)
        bounded(self, "prepare.", vocabulary=(SMALLEST, VOCABULARY), longest_source=length, longest_target=length)
        check_shares(self, "prepare.", "bpe_dropout")


@dataclass(frozen=True, eq=False)
class StructureWithText:
    """One encoded structure and one text for it.

    Attributes:
        structure: with its units.
        graph: the structure as an example: ids of units, messages, encodings, and as target the ids of the text from
            <s> to </s>; None if there is no text.
        texts: all reference texts.
        id: id of the item.
        text: the target as a text.
    """

    structure: Structure
    graph: Example
    texts: tuple[str, ...]
    id: str
    text: str | None = None

    @property
    def size(self) -> int:
        """Units to read."""
        return self.graph.size

    @property
    def ids(self) -> NDArray[Any]:
        """(n,) of the units that are read."""
        assert self.graph.x is not None
        return self.graph.x

    @property
    def target(self) -> Any:
        """Ids of the text; None if there is no text."""
        return self.graph.target

    @property
    def cost(self) -> int:
        """Units to read and to write."""
        return self.size + (0 if self.target is None else len(self.target))


class Preparer:
    """The preparation that training and use share: form of the graph, vocabulary, numbers of edge labels.

    Args:
        config: the form.
        tokenizer: the subword vocabulary.
        edge_types: numbers of edge labels.
    """

    def __init__(self, config: PrepareConfig, tokenizer: Tokenizer, edge_types: EdgeTypes) -> None:
        self.config, self.tokenizer, self.edge_types = config, tokenizer, edge_types
        known = tokenizer.get_vocab()
        self.padding, self.first, self.last = (known[unit] for unit in (PADDING, FIRST, LAST))

    @classmethod
    def fit(cls, items: Sequence[Item], config: PrepareConfig) -> Preparer:
        """Train the vocabulary and number the edge labels on a training split."""
        graphs = [_form(item.structure, config) for item in items]
        texts = [text for item in items for text in item.texts]
        labels = [label for graph in graphs for label in graph.nodes]
        roles = [label for label in labels if label.startswith(":")]
        words = [label for label in labels if not label.startswith(":")]
        tokenizer = train_vocabulary(texts + words, roles, config.vocabulary, config.lowercase)
        return cls(config, tokenizer, EdgeTypes.fit(graphs))

    @property
    def vocabulary_size(self) -> int:
        """Number of units."""
        return int(self.tokenizer.get_vocab_size())

    def structure(self, item: Item) -> Structure:
        """The item's graph in the form of the configuration, split into units."""
        return self._split(item)[0]

    def unread(self, items: Iterable[Item]) -> list[str]:
        """The characters of labels of which a byte is a unit of its own, as they are in no text or few."""
        labels = {label for item in items for label in (*item.structure.nodes, *item.structure.relations)}
        found = set()
        for label in labels:
            if not label.isascii():
                read = self.tokenizer.encode(label)
                bytes_of = [at for unit, at in zip(read.tokens, read.offsets, strict=True) if len(unit) == 1]
                found |= {label[a:b] for a, b in bytes_of if not label[a:b].isascii()}
        return sorted(found)

    def examples(
        self,
        items: Iterable[Item],
        encodings: Sequence[Encoding],
        every_text: bool = False,
        progress: Callable[[int], None] | None = None,
        jobs: int = 1,
    ) -> list[StructureWithText]:
        """Encode items.

        Args:
            items: from a reader.
            encodings: the encodings of the position models; each is computed once per structure.
            every_text: one example per reference text, for training; otherwise one per item, with the first text.
            progress: called with the number of items done.
            jobs: processes that encode; the examples do not depend on their number.
        """
        split_items = [(item, *self._split(item)) for item in items]
        encoded = columns([structure for _, structure, _ in split_items], encodings, jobs)
        examples = []
        for done, (item, structure, units) in enumerate(split_items, start=1):
            mine = {encoding: column[done - 1] for encoding, column in encoded.items()}
            graph = self.graph(structure, units, mine)
            for text in (item.texts if every_text else item.texts[:1]) or (None,):
                target = None if text is None else self.target(text)
                if every_text and target is not None and len(target) > self.config.longest_target:
                    continue
                examples.append(StructureWithText(structure, replace(graph, target=target), item.texts, item.id, text))
            if progress is not None:
                progress(done)
        return examples

    def target(self, text: str) -> NDArray[np.int64]:
        """(m,) ids of a text, from <s> to </s>."""
        return self.whole(self.tokenizer.encode(text).ids)

    def whole(self, ids: Sequence[int]) -> NDArray[np.int64]:
        """(m,) the ids of a text between <s> and </s>."""
        return np.array([self.first, *ids, self.last])

    def graph(self, structure: Structure, ids: NDArray[np.int64], encoded: Mapping[Encoding, Encoded]) -> Example:
        """The example of a structure that is split into units with these ids, without a target."""
        edges, types = self.edge_types.messages(structure)
        return Example(ids, edges, types, encoded, None, len(ids))

    def text(self, ids: Sequence[int]) -> str:
        """Decode ids to a text."""
        return str(self.tokenizer.decode(list(ids))).strip()

    def collate(
        self, examples: Sequence[StructureWithText], grouping: Grouping = "buckets", device: str = "cpu"
    ) -> Batch:
        """A batch; see :func:`structpe.data.batch.collate`."""
        return collate([example.graph for example in examples], grouping, self.padding, device)

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json`` and ``prepare.json``."""
        atomic_write(folder / "tokenizer.json", lambda hidden: self.tokenizer.save(str(hidden)))
        content = {"config": asdict(self.config), "relations": self.edge_types.relations}
        atomic_text(folder / "prepare.json", json.dumps(content, indent=2, ensure_ascii=False))

    @classmethod
    def load(cls, folder: Path) -> Preparer:
        """Read what :meth:`save` wrote.

        Raises:
            StoreError: a file is missing or damaged.
        """
        from tokenizers import Tokenizer

        for name in ("tokenizer.json", "prepare.json"):
            if not (folder / name).exists():
                raise StoreError(f"{folder} holds no {name}; give the folder of a finished or running training")
        with undamaged(folder / "prepare.json", TRAIN_AFRESH):
            content = json.loads((folder / "prepare.json").read_text(encoding="utf-8"))
            config, edge_types = PrepareConfig(**content["config"]), EdgeTypes(tuple(content["relations"]))
        with undamaged(folder / "tokenizer.json", TRAIN_AFRESH):
            return cls(config, Tokenizer.from_file(str(folder / "tokenizer.json")), edge_types)

    def _split(self, item: Item) -> tuple[Structure, NDArray[np.int64]]:
        result = split(_form(item.structure, self.config), self.tokenizer)
        if len(result.ids) > self.config.longest_source:
            wrong = f"the structure has {len(result.ids)} units, longest_source is {self.config.longest_source}"
            error = StructureError(f"{wrong}; raise prepare.longest_source or leave this item out")
            raise error.at(result.structure.name or item.id)
        return result.structure, result.ids


def _form(structure: Structure, config: PrepareConfig) -> Structure:
    if config.labels == "readable":
        structure = with_readable_labels(structure)
    if config.graph == "plain":
        return structure
    return levi(structure) if config.graph == "levi" else linearise(structure)
