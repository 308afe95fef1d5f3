"""Graphs as texts: readable labels, the linear form, and the text that a pretrained model reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from structpe.structure import Ids, Structure, of_structures, path
from structpe.transforms.nodes import levi, tour
from structpe.transforms.units import AnyTokenizer, as_tokenizer

__all__ = ["Form", "Written", "linearise", "readable", "readable_relation", "with_readable_labels", "written"]

_SENSE = re.compile(r"(?<=[a-z])-\d\d+$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def readable(label: str) -> str:
    """The label of a node: ``want-01`` becomes "want", ``Alan_Bean`` "Alan Bean", ``"B"`` B; AmeriGas stays."""
    return " ".join(_SENSE.sub("", label.strip().strip('"')).replace("_", " ").split()) or label


def readable_relation(label: str) -> str:
    """A relation: ``birthPlace`` becomes "birth place", ``LCCN_number`` "LCCN number"; roles (``:ARG0``) stay."""
    if label.startswith(":"):
        return label
    words = _HUMP.sub(" ", label.strip().strip('"').replace("_", " ")).split()
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in words) or label


@of_structures
def with_readable_labels(structure: Structure) -> Structure:
    """The same graph with labels from :func:`readable` and :func:`readable_relation`.

    Nodes stay separate, even if two have the same label now.

    Raises:
        StructureError: the nodes are already split into units; relabel first, then split.
    """
    if structure.units is not None:
        raise structure.error("the nodes are already split into units; make the labels readable first, then split")
    return replace(
        structure,
        nodes=tuple(readable(label) for label in structure.nodes),
        relations=tuple(readable_relation(label) for label in structure.relations),
    )


class _Token(NamedTuple):
    text: str
    origin: int = -1
    edge: int = -1


@of_structures
def linearise(structure: Structure) -> Structure:
    """A path graph over the depth-first linearisation, after Konstas et al. (2017): PENMAN without its variables.

    A node becomes its label, an edge its relation followed by its target. A node with outgoing edges is in brackets,
    except at the start. An edge of a directed graph that is walked against its direction adds ``-of``. A re-entrant
    node is repeated at each mention, without its edges. Edges without a relation have no token.

    ``(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))`` becomes ``want-01 :ARG0 boy :ARG1 ( go-02 :ARG0 boy )``.

    Features: ``origin``, the node of each token, -1 for brackets and relations; ``edge``, the edge of each relation, -1
    for others; ``is_relation``.

    Raises:
        StructureError: the structure has no order, or units are already split; split after this.
    """
    if structure.units is not None:
        raise structure.error("the nodes are already split into units; linearise first, then split")
    tokens = list(_tokens(structure))
    sequence = path([token.text for token in tokens], structure.name)
    features = {
        "origin": np.array([token.origin for token in tokens]),
        "edge": np.array([token.edge for token in tokens]),
        "is_relation": np.array([token.edge >= 0 for token in tokens]),
    }
    return replace(sequence, features=features)


def _tokens(structure: Structure) -> Iterator[_Token]:
    way = tour(structure)
    read: list[list[int]] = [[] for _ in structure.nodes]
    for edge, node in enumerate(way.site.tolist()):
        read[node].append(edge)
    # A stack of tokens to yield and nodes to expand, instead of recursion, since paths can be long.
    todo: list[_Token | int] = list(reversed(way.starts))
    while todo:
        here = todo.pop()
        if isinstance(here, _Token):
            yield here
            continue
        label = _Token(structure.nodes[here], here)
        bracketed = bool(read[here]) and (here not in way.starts or len(way.starts) > 1)
        below = [part for edge in read[here] for part in _edge(structure, edge, here, way.entry)]
        todo += reversed([_Token("("), label, *below, _Token(")")] if bracketed else [label, *below])


def _edge(structure: Structure, edge: int, here: int, entry: Ids) -> Iterator[_Token | int]:
    source, target = structure.edges[edge].tolist()
    forward = source == here
    other = target if forward else source
    if structure.relations:
        yield _Token(structure.relation(edge) + ("" if forward or not structure.directed else "-of"), edge=edge)
    yield other if entry[other] == edge else _Token(structure.nodes[other], other)


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
    """Write a graph as a text, and split it as a whole: its tokens are those that a pretrained model knows.

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
