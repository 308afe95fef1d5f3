"""A graph as a text that a pretrained model reads, and which unit of the graph each token of the text is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from structpe.structure import Ids, Structure, of_structures
from structpe.transforms._tokenizers import AnyTokenizer, as_tokenizer
from structpe.transforms.levi import levi
from structpe.transforms.linearise import linearise

__all__ = ["Form", "Written", "written"]

Form: TypeAlias = Literal["linear", "levi", "plain"]


@dataclass(frozen=True, eq=False)
class Written:
    """A graph as a text.

    Attributes:
        text: prompt, labels with a blank between them, suffix.
        ids: (t,) id of each token of the text.
        units: (t,) unit of each token; -1 for tokens of prompt and suffix, brackets, and special tokens.
        added: of each token, whether it is a special one that the tokenizer added.
        structure: the graph, whose units are the tokens of its labels.
    """

    text: str
    ids: Ids
    units: Ids
    added: tuple[bool, ...]
    structure: Structure


class _Word(NamedTuple):
    text: str
    node: int


@of_structures
def written(
    structure: Structure, tokenizer: AnyTokenizer, form: Form = "linear", prompt: str = "", suffix: str = ""
) -> Written:
    """Write a graph as a text, and split the text as a whole, so that its tokens are those a pretrained model knows.

    Args:
        structure: without units.
        tokenizer: as for :func:`structpe.transforms.split`.
        form: ``linear`` is the text of :func:`linearise`, with brackets and with re-entrant nodes repeated; ``levi``
            has each node and each relation once, in reading order, and no brackets; ``plain`` has the nodes only. With
            the first two the nodes of the graph are those of the Levi graph, if its edges have relations. Each mention
            of a node has units of its own, all owned by the node.
        prompt: before the graph, with the blank that separates it.
        suffix: behind the graph, with the blank that separates it.

    Raises:
        StructureError: the form needs an order that the structure does not have, or no label has a token.
        TokenizerError: as :func:`structpe.transforms.split`.
    """
    fast = as_tokenizer(tokenizer)
    graph, words = FORMS[form](structure)
    text = prompt + " ".join(word.text for word in words) + suffix
    encoding = fast.encode(text)
    place = _words_of(encoding, words, len(prompt), len(text))
    nodes = np.array([*(word.node for word in words), -1])[place]
    inside = np.flatnonzero(nodes >= 0)
    if not len(inside):
        raise structure.error("the tokenizer has no token for any label of the graph; give another tokenizer or labels")
    sequence = inside[np.argsort(nodes[inside], kind="stable")]
    units = np.full(len(nodes), -1)
    units[sequence] = np.arange(len(sequence))
    graph = graph.with_units([encoding.tokens[i] for i in sequence], nodes[sequence])
    return Written(text, np.array(encoding.ids), units, tuple(map(bool, encoding.special_tokens_mask)), graph)


def _words_of(encoding: Any, words: Sequence[_Word], start: int, length: int) -> Ids:
    """(t,) number of the word that each token covers most of, -1 for none. A blank belongs to the word behind it."""
    owner = np.full(length + 1, -1)
    for number, word in enumerate(words):
        owner[start : start + len(word.text)] = number
        start += len(word.text) + 1
    place = np.full(len(encoding.ids), -1)
    for i, ((first, last), added) in enumerate(zip(encoding.offsets, encoding.special_tokens_mask, strict=True)):
        covered = owner[first:last]
        covered = covered[covered >= 0]
        if len(covered):
            place[i] = np.bincount(covered).argmax()
        elif not added:
            place[i] = owner[last]
    return place


def _linear(structure: Structure) -> tuple[Structure, list[_Word]]:
    line = linearise(structure)
    nodes = line.features["origin"]
    if not structure.relations:
        return structure, list(map(_Word, line.nodes, nodes.tolist()))
    edges = line.features["edge"]
    nodes = np.where(edges >= 0, structure.size + edges, nodes)
    return levi(structure), list(map(_Word, line.nodes, nodes.tolist()))


def _levi(structure: Structure) -> tuple[Structure, list[_Word]]:
    return _plain(levi(structure) if structure.relations else structure)


def _plain(structure: Structure) -> tuple[Structure, list[_Word]]:
    order = range(structure.size) if structure.order is None else np.argsort(structure.order).tolist()
    return structure, [_Word(structure.nodes[node], node) for node in order]


FORMS: Mapping[Form, Callable[[Structure], tuple[Structure, list[_Word]]]] = {
    "linear": _linear,
    "levi": _levi,
    "plain": _plain,
}
"""The graph and the words of each form."""
