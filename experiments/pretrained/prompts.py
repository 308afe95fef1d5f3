"""Prompts of a language model: the tokens of a linearised graph, and which node of the Levi graph each of them is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from structpe.formats.reading import Item
from structpe.structure import Structure
from structpe.transforms import levi, linearise

__all__ = ["Prompt", "prompt", "units"]

NONE = -1
BEFORE, BEHIND = "Graph:", "\nText:"


class Prompt(NamedTuple):
    """One graph, and what is to be written for it.

    Attributes:
        structure: the Levi graph.
        ids: of the tokens: of the prompt, and nothing of the text.
        units: node of the Levi graph of each token; -1 for brackets and for the words around the graph.
        text: what is to be written.
    """

    structure: Structure
    ids: list[int]
    units: list[int]
    text: str

    @property
    def item(self) -> dict[str, Any]:
        """As the collator takes it, without the text."""
        return {"structure": self.structure, "input_ids": self.ids, "units": self.units}


def prompt(item: Item, tokenizer: Any) -> Prompt:
    """``Graph: want-01 :ARG0 boy ...``, each token of the linearised graph split by itself, with a blank before it."""

    def split(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    sequence = linearise(item.structure)
    pieces = [split(f" {label}") for label in sequence.nodes]
    places = [unit for unit, ids in zip(units(item.structure, sequence), pieces, strict=True) for _ in ids]
    before, behind = split(BEFORE), split(BEHIND)
    ids = before + [each for ids in pieces for each in ids] + behind
    return Prompt(levi(item.structure), ids, [NONE] * len(before) + places + [NONE] * len(behind), item.texts[0])


def units(structure: Structure, sequence: Structure) -> list[int]:
    """Node of the Levi graph of each token of the linearised graph.

    Each mention of a label has the unit of its node, a relation that of its edge. Brackets have no unit.
    """
    origin, relation = sequence.features["origin"].tolist(), sequence.features["is_relation"].tolist()
    edges = _edges(structure)
    found: list[int] = []
    holders: list[int] = []  # nodes whose brackets are open, the first without
    for place, label in enumerate(sequence.nodes):
        if relation[place]:
            after = next(each for each in origin[place + 1 :] if each >= 0)
            found.append(structure.size + next(edges[holders[-1], after, label]))
        elif origin[place] >= 0:
            found.append(origin[place])
            if not holders or (sequence.nodes[place - 1] == "(" and origin[place - 1] < 0):
                holders.append(origin[place])
        else:
            found.append(NONE)
            if label == ")":
                holders.pop()
    return found


def _edges(structure: Structure) -> dict[tuple[int, int, str], Iterator[int]]:
    """Numbers of edges by the node that mentions them, the other one, and the relation as it is written."""
    known: dict[tuple[int, int, str], list[int]] = {}
    for number, (source, target) in enumerate(structure.edges.tolist()):
        relation = structure.relation(number)
        known.setdefault((source, target, relation), []).append(number)
        known.setdefault((target, source, f"{relation}-of"), []).append(number)
    return {key: iter(numbers) for key, numbers in known.items()}
