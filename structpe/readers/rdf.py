"""RDF: statements as graphs, from N-Triples and N-Quads line by line, from Turtle, TriG, N3 and RDF/XML by rdflib."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias
from xml.parsers import expat

import numpy as np

from structpe.errors import ReadError, needing
from structpe.readers._kinds import HEAD, check_text
from structpe.readers._rdf_lines import STRING, Names, Term, statement
from structpe.readers._text import lines, shown
from structpe.readers._turtle import check_whole
from structpe.readers._xml import feed
from structpe.readers.base import Item, Yielded, attempt, reader
from structpe.structure import Structure

__all__ = ["graph_of", "item_of", "of_rdflib", "rdf"]

Statement: TypeAlias = tuple[Term, ...]
Each = Literal["file", "graph", "subject"]
Literals = Literal["shared", "own", "none"]
LINES = (".nt", ".nq")
FORMATS = {".ttl": "turtle", ".n3": "n3", ".trig": "trig", ".rdf": "xml", ".owl": "xml"}
BASE = "relative:/"
"""The base of relative IRIs, so that a graph contains no paths of this machine."""


@reader("rdf", ".nt .nq .ttl .n3 .trig .rdf .owl")
def rdf(path: Path, each: Each = "file", names: Names = "local", literals: Literals = "shared") -> Iterator[Yielded]:
    """RDF in N-Triples, N-Quads, Turtle, TriG, N3 or RDF/XML: a node per term, an edge per statement.

    A repeated statement is one edge. ``metadata`` has the ``terms`` of the nodes and the ``predicates`` of the edges in
    N-Triples, including language and datatype. N-Triples and N-Quads need no other library and are read line by line;
    unless ``each`` is ``file``, this takes the memory of one graph. Nothing is downloaded, relative IRIs become
    ``relative:/...``, and RDF/XML with a document type or entities raises an error.

    Args:
        path: a file; its suffix determines the notation.
        each: what an item is: the whole ``file``, each named ``graph``, or the statements of each ``subject``. In
            N-Triples and N-Quads, lines of a graph or subject that are not consecutive are several items.
        names: labels of nodes and edges: ``local`` names, ``full`` IRIs, or ``terms`` in N-Triples.
        literals: equal ones are one node (``shared``), each is a separate node (``own``), or they are left out
            (``none``).
    """
    made = partial(_item, file=path.name, names=names, literals=literals)
    if path.suffix in LINES:
        yield from _by_lines(path, each, made)
    else:
        for key, group in _grouped(_parsed(path), each):
            yield attempt(partial(made, key, group), key)


def item_of(
    statements: Iterable[Statement], name: str = "", id: str = "", names: Names = "local", literals: Literals = "shared"
) -> Item:
    """An item with the graph of statements, and their terms as metadata; see :func:`rdf`.

    Nodes are in the order in which statements first mention them, which is the reading order; the root is the first
    subject. The feature ``is_literal`` (n,) marks the literals. Blank nodes are renumbered: ``_:b1``, ...

    Raises:
        StructureError: there is no statement.
    """
    number: dict[tuple[Term, int], int] = {}
    terms: list[Term] = []
    blanks: dict[Term, Term] = {}
    edges: dict[tuple[int, Term, int], None] = {}
    for place, (subject, predicate, thing, *_) in enumerate(statements, 1):
        if thing.kind == "literal" and literals == "none":
            continue
        ends = []
        for term in (subject, thing):
            if term.kind == "blank":
                term = blanks.setdefault(term, Term("blank", f"b{len(blanks) + 1}"))
            key = term, place if term.kind == "literal" and literals == "own" else 0
            if key not in number:
                number[key] = len(terms)
                terms.append(term)
            ends.append(number[key])
        edges[ends[0], predicate, ends[1]] = None
    structure = Structure(
        tuple(term.label(names) for term in terms),
        np.array([(source, target) for source, _, target in edges], dtype=np.int64).reshape(-1, 2),
        tuple(predicate.label(names) for _, predicate, _ in edges),
        order=np.arange(len(terms)),
        root=0 if terms else None,
        features={"is_literal": np.array([term.kind == "literal" for term in terms], dtype=bool)},
        name=name,
    )
    said = {
        "terms": tuple(term.notation() for term in terms),
        "predicates": tuple(predicate.notation() for _, predicate, _ in edges),
    }
    return Item(structure, id=id, metadata=said)


def of_rdflib(value: Any) -> Term:
    """The term of a node of rdflib.

    Raises:
        ReadError: it is not a term of RDF, but a variable or a formula of N3.
    """
    import rdflib

    if isinstance(value, rdflib.BNode):
        return Term("blank", str(value))
    if isinstance(value, rdflib.URIRef):
        return Term("iri", str(value))
    if isinstance(value, rdflib.Literal):
        datatype = "" if value.datatype is None or str(value.datatype) == STRING else str(value.datatype)
        return Term("literal", str(value), (value.language or "").lower(), datatype)
    raise ReadError(f"{shown(str(value))} is a {type(value).__name__}; RDF has IRIs, blank nodes and literals only")


def graph_of(graph: Any) -> Iterator[Statement]:
    """The statements of a graph of rdflib; those of a data set with the names of their graphs.

    They are sorted, because rdflib keeps no order, and the order of a graph differs in each run.
    """
    import rdflib

    if isinstance(graph, rdflib.Dataset):
        yield from sorted(_named(rdflib, triple, name) for *triple, name in graph.quads())
    else:
        yield from sorted(tuple(map(of_rdflib, triple)) for triple in graph)


def _named(rdflib: Any, triple: Iterable[Any], name: Any) -> Statement:
    """A statement with the name of its graph, if that has one."""
    named = () if name in (None, rdflib.graph.DATASET_DEFAULT_GRAPH_ID) else (of_rdflib(name),)
    return (*map(of_rdflib, triple), *named)


def _item(key: str, statements: Sequence[Statement], file: str, names: Names, literals: Literals) -> Item:
    return item_of(statements, f"{file}:{key}" if key else file, key or "1", names, literals)


def _by_lines(path: Path, each: Each, made: Any) -> Iterator[Yielded]:
    """Yield items while lines are read; only the terms of the whole file are kept."""
    if each == "file":
        yield attempt(partial(made, "", (found for _, found in _statements(path) if isinstance(found, tuple))))
        return
    group: list[Statement] = []
    first, key = 0, None
    for number, found in _statements(path, skip=True):
        if isinstance(found, ReadError):
            yield found
            continue
        now = _key(found, each)
        if group and now != key:
            yield attempt(partial(made, str(key), group), str(key), first)
            group = []
        first, key = number if not group else first, now
        group.append(found)
    if group:
        yield attempt(partial(made, str(key), group), str(key), first)


def _statements(path: Path, skip: bool = False) -> Iterator[tuple[int, Statement | ReadError]]:
    for number, line in lines(path):
        try:
            found = statement(line)
        except ReadError as error:
            if not skip:
                raise error.at(f"line {number}") from None
            yield number, error.at(f"line {number}")
            continue
        if found is not None:
            if len(found) == 4 and path.suffix == ".nt":
                raise ReadError("the statement has four terms, as in N-Quads; name the file .nq").at(f"line {number}")
            yield number, found


def _key(statement_: Statement, each: Each) -> str:
    """The key that the statements of an item share."""
    if each == "subject":
        return statement_[0].label("full")
    return statement_[3].label("full") if len(statement_) == 4 else "default"


def _grouped(statements: Iterable[Statement], each: Each) -> Iterator[tuple[str, list[Statement]]]:
    groups: dict[str, list[Statement]] = {}
    for found in statements:
        groups.setdefault("" if each == "file" else _key(found, each), []).append(found)
    yield from groups.items()


def _parsed(path: Path) -> Iterable[Statement]:
    """The statements of a file, by rdflib."""
    if path.suffix not in FORMATS:
        known = ", ".join((*LINES, *FORMATS))
        raise ReadError(f"the name ends in {path.suffix!r}, which is not a notation of RDF; known: {known}")
    with needing("rdflib", "kg"):
        import rdflib
    content = path.read_bytes()
    xml = FORMATS[path.suffix] == "xml"
    check_text(content[:HEAD], xml)
    (_refuse_declarations if xml else check_whole)(content)
    store, seen = _recording()
    graph = rdflib.Dataset(store=store) if path.suffix == ".trig" else rdflib.Graph(store=store)
    try:
        with _as_written(rdflib):
            graph.parse(data=content, format=FORMATS[path.suffix], publicID=BASE)
    except ReadError:
        raise
    except Exception as error:  # rdflib raises any error of its parsers
        reason = " ".join(str(error).split())
        at = [f"line {error.lines + 1}"] if isinstance(vars(error).get("lines"), int) else []  # type: ignore[attr-defined]
        raise ReadError(f"not {FORMATS[path.suffix]}: {type(error).__name__}: {shown(reason)}; correct it").at(
            *at
        ) from None
    quads = [(triple, name if path.suffix == ".trig" else None) for triple, name in seen]
    return (_named(rdflib, triple, name) for triple, name in quads)


def _recording() -> tuple[Any, dict[tuple[Any, Any], None]]:
    """A store of rdflib, and the statements added to it in the order of the file, with the names of their graphs."""
    from rdflib.plugins.stores.memory import Memory

    seen: dict[tuple[Any, Any], None] = {}

    class Recording(Memory):
        def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
            if quoted:
                raise ReadError("there are formulas in braces, which N3 has but RDF does not; leave them out")
            seen[triple, context.identifier] = None
            super().add(triple, context, quoted)

    return Recording(), seen


@contextmanager
def _as_written(rdflib: Any) -> Iterator[None]:
    """Keep literals unchanged ("01" would become "1"), and suppress rdflib's warnings about their values."""
    log = logging.getLogger("rdflib.term")
    before = rdflib.NORMALIZE_LITERALS, log.disabled
    rdflib.NORMALIZE_LITERALS, log.disabled = False, True
    try:
        with warnings.catch_warnings():  # deprecations inside rdflib
            warnings.simplefilter("ignore")
            yield
    finally:
        rdflib.NORMALIZE_LITERALS, log.disabled = before


def _refuse_declarations(content: bytes) -> None:
    """Raise an error for document types and entities, which can fill the memory or open files in rdflib's parser."""
    parser = expat.ParserCreate()

    def refuse(name: str, *_: object) -> None:
        raise ReadError(
            f"the XML declares a document type or entity ({name!r}), which is refused; replace it by its content, or "
            "save the file as Turtle"
        ).at(f"line {parser.CurrentLineNumber}")

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    feed(parser, content)
