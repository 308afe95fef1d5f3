"""What a server does with its items: a run writes texts, predicts graphs, or parses sentences.

An item is an object of JSON: whatever :func:`structpe.formats.as_item` takes as a mapping (facts; tokens and heads; a
graph in node-link form or with an ``edge_index``), or a text under the name of its form, such as ``penman``.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from structpe.data.features import Categories
from structpe.errors import ReadError, StructPEError, listed
from structpe.formats import Item, as_item, as_structure
from structpe.structure import Structure
from structpe.tasks import Generator, Predictor, load

if TYPE_CHECKING:
    from spacy.language import Language

__all__ = ["Served", "served"]

KINDS = {
    "penman": "amr",
    "brackets": "ptb",
    "smiles": "smiles",
    "python": "python",
    "words": "tokens",
}
"""Forms that are texts, and the name of each in :func:`structpe.as_structure`."""
SENTENCE = "sentence"
"""The form of a sentence that spaCy parses."""
TRIED: dict[str, dict[str, Any]] = {
    "facts": {"facts": [["Ada Lovelace", "wrote about", "Analytical Engine"], ["Ada Lovelace", "born in", "London"]]},
    "penman": {"penman": "(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))"},
    "smiles": {"smiles": "CC(=O)Oc1ccccc1C(=O)O"},
    "sentence": {"sentence": "The keeper lit the lamp."},
    "tree": {"tokens": ["She", "sings", "songs"], "heads": [2, 0, 2], "labels": ["nsubj", "root", "obj"]},
    "edge_index": {
        "edge_index": [[0, 1, 1, 2], [1, 0, 2, 1]],
        "num_nodes": 3,
        "labels": ["lamp", "wick", "oil"],
        "relations": ["part", "part", "takes", "takes"],
    },
    "node-link": {
        "directed": True,
        "root": "a",
        "nodes": [{"id": "a", "label": "lamp"}, {"id": "b", "label": "wick"}],
        "edges": [{"source": "a", "target": "b", "relation": "part"}],
    },
}
"""An item of each form; those that a run takes are the examples of its page."""


class Served(ABC):
    """A loaded run.

    Args:
        nodes: nodes and units that a structure may have.
        parser: the pipeline for the form ``sentence``; None without it.
    """

    verb: ClassVar[str]
    """What it does, the path of its address."""

    def __init__(self, nodes: int, parser: Language | None = None) -> None:
        self.nodes, self.parser = nodes, parser
        self._parsing = threading.Lock()

    @abstractmethod
    def work(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        """A result for each item, in their order, as plain data."""

    def item(self, given: Any, number: int) -> Any:
        """What :meth:`work` takes, of an item of a request, counted from 1.

        Raises:
            StructPEError: it is not of a known form, is invalid, or too large.
        """
        if not isinstance(given, Mapping):
            raise ReadError(f"it is {repr(given)[:80]}; give an object, such as {{'facts': [['a', 'b', 'c']]}}")
        texts = [form for form in (*KINDS, SENTENCE) if form in given]
        if len(texts) > 1:
            raise ReadError(f"it has {' and '.join(texts)}, which are two structures; give each as an item")
        self._check_count(given)
        if texts and "structure" not in given:
            rest = {key: value for key, value in given.items() if key != texts[0]}
            given = {**rest, "structure": self._structure(texts[0], given[texts[0]])}
        item = as_item(given, str(number))
        self._check_size(max(item.structure.size, item.structure.unit_count))
        return item

    def examples(self) -> dict[str, dict[str, Any]]:
        """An item of each form that the run takes, tried here: this is also what warms it up."""
        found = {}
        for form, item in self._tried().items():
            try:
                self.work([self.item(item, 1)])
            except StructPEError:
                continue
            found[form] = item
        return found

    def _tried(self) -> Mapping[str, dict[str, Any]]:
        return TRIED

    def _structure(self, form: str, text: Any) -> Structure:
        if not isinstance(text, str):
            raise ReadError(f"{form!r} is {repr(text)[:80]}; give a text")
        if form == SENTENCE:
            return self._parsed(text)
        return as_structure(text, kind=KINDS[form], **(self._options() if form == "smiles" else {}))

    def _options(self) -> Mapping[str, Any]:
        """Options of reading SMILES."""
        return {}

    def _parsed(self, text: str) -> Structure:
        if self.parser is None:
            raise ReadError(
                "the server has no parser; start it with --parser NAME, or give the tokens and heads of the sentence"
            )
        self._check_size(len(text.split()))
        found = self._trees([text], self.parser)
        if len(found) != 1:
            raise ReadError(f"the text has {len(found)} sentences; give one")
        return found[0].structure

    def _trees(self, texts: Sequence[str], nlp: Language) -> list[Item]:
        from structpe.parsing import parse_texts

        with self._parsing:
            return [parsed.item for parsed in parse_texts(texts, nlp)]

    def _check_count(self, given: Mapping[str, Any]) -> None:
        """Check what makes a large structure of a few letters, before it is made."""
        for each in (given, given.get("structure")):
            if not isinstance(each, Mapping):
                continue
            if (count := each.get("num_nodes")) is not None:
                if not isinstance(count, int):
                    raise ReadError(f"'num_nodes' is {repr(count)[:80]}; give a whole number")
                self._check_size(count)
            if not isinstance(nodes := each.get("nodes", []), list):
                raise ReadError(f"'nodes' is {repr(nodes)[:80]}; give the list of nodes")

    def _check_size(self, size: int) -> None:
        if size > self.nodes:
            raise ReadError(f"the structure has {size:,} nodes or units; give a part of it with {self.nodes} at most")


class ServedTexts(Served):
    """A run that writes texts."""

    verb = "generate"

    def __init__(self, generator: Generator, nodes: int, parser: Language | None) -> None:
        super().__init__(nodes, parser)
        self.generator = generator

    def work(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        return [{"id": each.id, "text": each.text} for each in self.generator.generate(items, batch_size=len(items))]


class ServedPredictions(Served):
    """A run that predicts graphs, or each of their nodes."""

    verb = "predict"

    def __init__(self, predictor: Predictor, nodes: int, parser: Language | None) -> None:
        super().__init__(nodes, parser)
        self.predictor = predictor

    def work(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        found = self.predictor.predict(items)
        columns = {name: values.tolist() for name, values in found.columns.items()}
        rows: list[list[dict[str, Any]]] = [[] for _ in items]
        for row, graph in enumerate(found.graph.tolist()):
            rows[graph].append({name: values[row] for name, values in columns.items()})
        if found.node is not None:
            return [{"id": item.id, "nodes": each} for item, each in zip(items, rows, strict=True)]
        return [{"id": item.id, "prediction": each[0]} for item, each in zip(items, rows, strict=True)]

    def _options(self) -> Mapping[str, Any]:
        signature = self.predictor.signature
        if signature.reader != "smiles":
            return {}
        return {key: signature.options[key] for key in ("features", "strict") if key in signature.options}

    def _tried(self) -> Mapping[str, dict[str, Any]]:
        """With features as the model reads them."""
        nodes, edges = self.predictor.signature.nodes, self.predictor.signature.edges
        row = dict(TRIED["edge_index"])
        for key, kind, count in (("x", nodes, 3), ("edge_attr", edges, 4)):
            if kind is not None:
                row[key] = [[0 if isinstance(kind, Categories) else 0.5] * kind.columns] * count
        return {**TRIED, "edge_index": row}


class ServedParses(Served):
    """A parser, whose items are texts of one sentence or several."""

    verb = "parse"

    def item(self, given: Any, number: int) -> tuple[str, str]:
        if not isinstance(given, Mapping) or not isinstance(text := given.get("text"), str) or not text.strip():
            raise ReadError(f"it is {repr(given)[:80]}; give an object with a 'text' that is not empty")
        if unknown := set(given) - {"id", "text"}:
            raise ReadError(f"it has {listed(sorted(unknown))}; an item of a parser has 'text' and maybe 'id'")
        self._check_size(len(text.split()))
        return str(given.get("id", number)), text

    def work(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        assert self.parser is not None
        sentences: list[list[dict[str, Any]]] = [[] for _ in items]
        for tree in self._trees([text for _, text in items], self.parser):
            sentences[int(tree.id.partition(".")[0]) - 1].append(_columns(tree.structure))
        return [{"id": id, "sentences": each} for (id, _), each in zip(items, sentences, strict=True)]

    def _tried(self) -> Mapping[str, dict[str, Any]]:
        return {"text": {"text": "The keeper lit the lamp. It rained."}}


def _columns(tree: Structure) -> dict[str, Any]:
    """The words of a tree, the number of the head of each from 1, with 0 for the root, and their relations."""
    heads, labels = [0] * tree.size, ["root"] * tree.size
    for edge, (head, word) in enumerate(tree.edges.tolist()):
        heads[word], labels[word] = head + 1, tree.relation(edge)
    return {"tokens": list(tree.nodes), "heads": heads, "labels": labels}


def served(run: Path, device: str | None, nodes: int, parser: str | None) -> Served:
    """Load a run.

    Args:
        run: its folder; or that of a pipeline of spaCy, such as from ``structpe parse --train``.
        device: as of :func:`structpe.load`.
        nodes: nodes and units that a structure may have.
        parser: name or folder of the pipeline for the form ``sentence``.

    Raises:
        StructPEError: the run or the parser cannot be loaded.
    """
    from structpe.parsing import load_parser

    if (run / "config.cfg").is_file():  # of spaCy
        return ServedParses(nodes, load_parser(run))
    nlp = None if parser is None else load_parser(parser)
    loaded = load(run, device)
    if isinstance(loaded, Predictor):
        return ServedPredictions(loaded, nodes, nlp)
    return ServedTexts(loaded, nodes, nlp)
