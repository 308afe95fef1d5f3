"""RDF: statements as graphs, from and to N-Triples, N-Quads, Turtle, TriG, N3, RDF/XML and rdflib.

N-Triples and N-Quads are read here, line by line, and need no other library; the other notations by pyoxigraph.
``as_structure(graph, names="terms")`` labels nodes and edges by whole terms. From these the inverse restores the
statements, with other names of blank nodes. rdflib keeps no order, so statements are sorted. With ``base=``, labels
that are not terms become IRIs. Order, root, units, features and name are lost.
"""

from __future__ import annotations

import codecs
import io
import re
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from urllib.parse import quote, unquote
from xml.parsers import expat

import numpy as np

from structpe.errors import ReadError, StructureError, needing
from structpe.formats.converting import ConversionError, add_converter
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import HEAD, LIMIT, check_text, lines, shown
from structpe.formats.writing import WriteError, writer
from structpe.formats.xml import feed
from structpe.structure import Structure

if TYPE_CHECKING:
    import rdflib

__all__ = [
    "Names",
    "Term",
    "from_rdflib",
    "graph_of",
    "item_of",
    "of_rdflib",
    "rdf",
    "rdf_text",
    "statement",
    "statements",
    "term",
    "to_rdflib",
]


Names = Literal["local", "full", "terms"]

_CODE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_IRI = rf"<((?:[^\x00-\x20<>\"{{}}|^`\\]+|{_CODE})*+)>"
_BLANK = r"(?>_:([^\W.-](?:[\w.·-]*[\w·-])?))"
_TEXT = rf'"((?:[^"\\\n\r]+|\\[tbnrf"\'\\]|{_CODE})*+)"'
_ANY = rf"(?:{_IRI}|{_BLANK}|{_TEXT}(?:@([a-zA-Z]+(?:-[a-zA-Z0-9]+)*)|\^\^{_IRI})?)[ \t]*"
_TERM = re.compile(_ANY)
_STATEMENT = re.compile(rf"[ \t]*{_ANY}{_ANY}{_ANY}(?:{_ANY})?\.[ \t]*(?:#.*)?\Z")
_BEGUN = re.compile(rf"[ \t]*(?:{_ANY}){{,4}}")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_LETTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_QUOTED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
STRING = "http://www.w3.org/2001/XMLSchema#string"


class Term(NamedTuple):
    """A term of a triple.

    Attributes:
        kind: ``iri``, ``blank`` or ``literal``.
        text: the IRI, the name of the blank node, or the text of the literal.
        language: language of a literal, such as ``cs``; empty without a language.
        datatype: IRI of the type of a literal; empty for plain strings and texts with a language.
    """

    kind: Literal["iri", "blank", "literal"]
    text: str
    language: str = ""
    datatype: str = ""

    def label(self, names: Names) -> str:
        """The label of a node or edge of this term.

        ``terms`` is its notation in N-Triples, which is lossless; ``full`` leaves out brackets and quotes; ``local`` is
        the part after the last ``#``, ``/`` or ``:`` of an IRI, if it is not empty.
        """
        if names == "terms":
            return self.notation()
        if self.kind == "blank":
            return f"_:{self.text}"
        if self.kind == "literal" or names == "full":
            return self.text
        last = re.split(r"[#/:]", self.text.rstrip("#/"))[-1]
        return unquote(last) or self.text

    def notation(self) -> str:
        """The notation in N-Triples."""
        if self.kind == "blank":
            return f"_:{self.text}"
        if self.kind == "iri":
            return f"<{_escaped_iri(self.text)}>"
        text = "".join(_QUOTED.get(letter) or _written(letter) for letter in self.text)
        kind = f"@{self.language}" if self.language else f"^^<{_escaped_iri(self.datatype)}>" if self.datatype else ""
        return f'"{text}"{kind}'


def term(text: str) -> Term | None:
    """The term with this notation; None if it is not one."""
    found = _TERM.fullmatch(text)
    return None if found is None or text[-1] in " \t" else _made(*found.groups())


def statement(line: str) -> tuple[Term, ...] | None:
    """Subject, predicate and object of a line, and the name of a graph, if any; None for a comment or a blank line.

    Raises:
        ReadError: the line is not a statement.
    """
    found = _STATEMENT.match(line)
    if found is None:
        begun = _BEGUN.match(line)
        at = begun.end() if begun else 0
        if not line[:at].strip() and line[at : at + 1] in ("", "#"):
            return None
        raise ReadError(
            f"{shown(line)} is not a statement of N-Triples at column {at + 1}; write <subject> <predicate> <object> . "
            'with IRIs in full, _:names and "texts"'
        )
    parts = found.groups()
    terms = tuple(_made(*parts[at : at + 5]) for at in range(0, 15 if parts[15:] == _NOTHING else 20, 5))
    for each, place in zip(terms, ("subject", "predicate", "object", "graph"), strict=False):
        if each.kind != "iri" and place != "object" and (each.kind == "literal" or place == "predicate"):
            raise ReadError(f"the {place} {shown(each.notation())} is a {each.kind}; RDF forbids it there")
    return terms


_NOTHING = (None,) * 5


def _made(iri: str | None, blank: str | None, text: str, language: str | None, datatype: str | None) -> Term:
    if iri is not None:
        return Term("iri", _unescaped(iri))
    if blank is not None:
        return Term("blank", blank)
    kind = _unescaped(datatype or "")
    return Term("literal", _unescaped(text), (language or "").lower(), "" if kind == STRING else kind)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_letter, text) if "\\" in text else text


def _letter(found: re.Match[str]) -> str:
    short, long, letter = found.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    code = int(short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ReadError(f"{found[0]} is not a character; correct it")
    return chr(code)


def _written(letter: str) -> str:
    return f"\\u{ord(letter):04X}" if letter < " " or letter in "\x7f\x85\u2028\u2029" else letter


def _escaped_iri(text: str) -> str:
    return re.sub(r"[\x00-\x20<>\"{}|^`\\]", lambda found: f"\\u{ord(found[0]):04X}", text)


ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def statements(
    structure: Structure, metadata: Mapping[str, Any], base: str | None
) -> Iterator[tuple[Term, Term, Term]]:
    """One statement per edge.

    The terms of nodes are ``metadata["terms"]``, those of edges ``metadata["predicates"]``, if the reader has set them
    and there is one for each. Otherwise labels must be terms in N-Triples (``names="terms"``), or, with a base, any
    texts: literals if the feature ``is_literal`` is true, else IRIs of the base and the label.

    Raises:
        StructureError: the structure is undirected, a node has no edge, a label is not a term, two nodes would be the
            same term, or RDF forbids a term in its place.
    """
    if not structure.directed:
        raise structure.error("a statement of RDF leads from subject to object, but the structure is undirected")
    if alone := set(range(structure.size)) - set(np.unique(structure.edges).tolist()):
        node = min(alone)
        raise structure.error(f"node {node} ({structure.nodes[node]!r}) is in no edge; RDF is statements only")
    nodes = _terms(structure, metadata.get("terms"), structure.nodes, base, "node")
    relations = [structure.relation(edge) for edge in range(len(structure.edges))]
    edges = _terms(structure, metadata.get("predicates"), relations, base, "edge")
    _check_different(structure, nodes)
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        if nodes[source].kind == "literal" or edges[edge].kind != "iri":
            what = "begins at a literal" if nodes[source].kind == "literal" else f"is a {edges[edge].kind}"
            raise structure.error(f"edge {edge}, {source} -> {target}, {what}; RDF has no such statement")
        yield nodes[source], edges[edge], nodes[target]


def _terms(
    structure: Structure, given: Sequence[str] | None, labels: Sequence[str], base: str | None, what: str
) -> list[Term]:
    literal = np.asarray(structure.features.get("is_literal", np.zeros(structure.size))).astype(bool)
    found = []
    notations = given if given is not None and len(given) == len(labels) else labels
    for place, (label, notation) in enumerate(zip(labels, notations, strict=True)):
        made = term(notation)
        if made is not None and made.kind == "iri" and notations is labels and not ABSOLUTE.match(made.text):
            made = None  # a text such as <> or <b>, which is invalid in N-Triples
        if made is None and base is not None and label.strip():
            of_node = what == "node" and literal.ndim == 1 and bool(literal[place])
            made = Term("literal", label) if of_node else Term("iri", base + quote(label, safe="!$&'()*+,;=:@~"))
        if made is None:
            raise structure.error(
                f"the label of {what} {place} is {shown(label)}, which is not a term of RDF; read with names='terms', "
                "or give base='http://example.org/' to make IRIs from labels"
            )
        found.append(made)
    return found


def _check_different(structure: Structure, nodes: Sequence[Term]) -> None:
    """Check that nodes are different terms, since they would become one node; literals may be repeated."""
    first: dict[Term, int] = {}
    for node, each in enumerate(nodes):
        if each.kind != "literal" and (other := first.setdefault(each, node)) != node:
            raise structure.error(f"nodes {other} and {node} are both {each.notation()}; make their labels differ")


Statement: TypeAlias = tuple[Term, ...]
Each = Literal["file", "graph", "subject"]
Literals = Literal["shared", "own", "none"]
LINES = (".nt", ".nq")
FORMATS = {".ttl": "Turtle", ".n3": "N3", ".trig": "TriG", ".rdf": "RDF/XML", ".owl": "RDF/XML"}
EACH = 100
"""The characters of all terms per byte of the file, plus 64 MiB: a long prefix may be used often."""
BASE = "relative:/"
"""The base of relative IRIs, which would otherwise contain the path of the file on this machine."""


@reader("rdf", ".nt .nq .ttl .n3 .trig .rdf .owl")
def rdf(path: Path, each: Each = "file", names: Names = "local", literals: Literals = "shared") -> Iterator[Yielded]:
    """RDF in N-Triples, N-Quads, Turtle, TriG, N3 or RDF/XML: a node per term, an edge per statement.

    A repeated statement is one edge. ``metadata`` has the ``terms`` of the nodes and the ``predicates`` of the edges in
    N-Triples, including language and datatype. N-Triples and N-Quads need no other library and are read line by line;
    unless ``each`` is ``file``, this takes the memory of one graph. Nothing is downloaded, relative IRIs in the other
    notations become ``relative:/...``, and RDF/XML with a document type or entities raises an error. The statements of
    a list ``( ... )`` or of ``rdf:parseType="Collection"`` are in the order in which pyoxigraph makes them. What is new
    in RDF 1.2, triples as terms and texts with a direction, raises an error.

    Args:
        path: a file; its suffix determines the notation.
        each: an item is the whole ``file``, a named ``graph``, or the statements of a ``subject``. In N-Triples and
            N-Quads, lines of a graph or subject that are not consecutive are several items.
        names: labels of nodes and edges: ``local`` names, ``full`` IRIs, or ``terms`` in N-Triples.
        literals: equal ones are one node (``shared``), each is a separate node (``own``), or they are left out
            (``none``).
    """
    made = partial(_item, file=path.name, names=names, literals=literals)
    if path.suffix in LINES:
        yield from _by_lines(path, each, made)
    else:
        groups: dict[str, dict[Statement, None]] = {}
        for found in _parsed(path):
            groups.setdefault("" if each == "file" else _key(found, each), {})[found] = None
        for key, group in groups.items():
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


def _item(key: str, statements: Iterable[Statement], file: str, names: Names, literals: Literals) -> Item:
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


def _parsed(path: Path) -> Iterator[Statement]:
    """The statements of a file, by pyoxigraph."""
    if path.suffix not in FORMATS:
        known = ", ".join((*LINES, *FORMATS))
        raise ReadError(f"the name ends in {path.suffix!r}, which is not a notation of RDF; known: {known}")
    with needing("pyoxigraph", "kg"):
        import pyoxigraph
    name = FORMATS[path.suffix]
    content = path.read_bytes()
    check_text(content[:HEAD], name == "RDF/XML")
    left = LIMIT + EACH * len(content)
    source = _Lines(_utf8_of_xml(content) if name == "RDF/XML" else content.removeprefix(codecs.BOM_UTF8))
    format = getattr(pyoxigraph.RdfFormat, name.upper().replace("/", "_"))
    try:
        for subject, predicate, thing, graph in pyoxigraph.parse(source, format, base_iri=BASE, lenient=True):
            if name == "N3" and not isinstance(graph, pyoxigraph.DefaultGraph):
                raise ReadError("there are formulas in braces, which N3 has but RDF does not; leave them out")
            named = () if isinstance(graph, pyoxigraph.DefaultGraph) else (graph,)
            found = tuple(map(_of_oxigraph, (subject, predicate, thing, *named)))
            left -= sum(len(each.text) for each in found)
            if left < 0:
                raise ReadError(f"prefixes make the terms over {EACH} times as long as the file; write shorter ones")
            yield found
    except ReadError as error:
        raise error.at(f"line {source.number}") from None
    except SyntaxError as error:
        if "UTF-8" in error.msg:
            deque(lines(path), 0)  # raises an error with the byte
        if "Unexpected end" in error.msg:
            wrong = "the last statement does not end in a full stop; the file is truncated, restore it"
            raise ReadError(wrong).at(f"line {source.number}") from None
        reason = re.sub(r"^Parser error at line \d+ | \(line \d+\)$", "", " ".join(error.msg.split()))
        wrong = f"not {name}: {shown(reason)}; correct it"
        raise ReadError(wrong).at(f"line {error.lineno or source.number}") from None


class _Lines(io.BytesIO):
    """Gives a line at a time: their number is the place of a parser that does not tell it."""

    number = 0

    def read(self, size: int | None = -1, /) -> bytes:
        line = self.readline(size)
        self.number += bool(line)
        return line


def _of_oxigraph(value: Any) -> Term:
    kind = type(value).__name__
    if kind == "NamedNode":
        return Term("iri", value.value)
    if kind == "BlankNode":
        return Term("blank", value.value)
    if kind != "Literal" or value.direction is not None:
        what = "triple" if kind == "Triple" else "text with a direction"
        raise ReadError(f"{shown(str(value))} is a {what}, which RDF 1.2 has but RDF 1.1 does not; leave it out")
    datatype = "" if value.language or value.datatype.value == STRING else value.datatype.value
    return Term("literal", value.value, value.language or "", datatype)


def _utf8_of_xml(content: bytes) -> bytes:
    """XML in UTF-8, the one encoding that pyoxigraph reads.

    Raises:
        ReadError: the XML is not well-formed, or it declares a document type or entities, which can fill the memory.
    """
    parser, encoding = expat.ParserCreate(), "utf-8-sig"

    def refuse(name: str, *_: object) -> None:
        raise ReadError(
            f"the XML declares a document type or entity ({name!r}), which is refused; replace it by its content, or "
            "save the file as Turtle"
        ).at(f"line {parser.CurrentLineNumber}")

    def declared(version: str, name: str | None, standalone: int) -> None:
        nonlocal encoding
        encoding = name or encoding

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.XmlDeclHandler = declared
    feed(parser, content)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    return re.sub(r"\A<\?xml.*?\?>", "", content.decode(encoding), count=1, flags=re.DOTALL).encode()


@writer("rdf", ".nt .nq .ttl")
def rdf_text(item: Item, base: str | None = None, graphs: bool = False) -> str:
    """N-Triples, a line per edge; N-Quads if each item is a separate graph.

    Terms are those in the metadata from the reader ``rdf``, or the labels, if these are terms in N-Triples. Blank nodes
    of items with different ids are different. A repeated statement is read again as one, and nodes are then numbered in
    the order of the statements.

    Args:
        item: a directed graph.
        base: prefix of the IRIs for labels that are not terms, such as ``http://example.org/``.
        graphs: whether to write the id of the item as the graph of each statement (``.nq``); otherwise all items are
            one graph.

    Raises:
        WriteError: the structure is undirected, a node has no edge, a label is not a term and there is no base, two
            nodes are the same term, or a literal is a subject.
    """
    try:
        found = list(statements(item.structure, item.metadata, base))
    except StructureError as error:
        raise WriteError(error.message).at(*error.places) from None
    named = f" {Term('iri', f'urn:item:{item.id}').notation()}" if graphs else ""
    mark = f"i{zlib.crc32(item.id.encode('utf-8', 'surrogatepass')):08x}"
    return "".join(" ".join(_term_text(term, mark) for term in statement) + f"{named} .\n" for statement in found)


def _term_text(term: Term, mark: str) -> str:
    notation = term.notation()
    try:
        notation.encode()
    except UnicodeEncodeError:
        raise WriteError(f"{notation!r} has a lone surrogate, which cannot be written in UTF-8; correct it") from None
    return f"_:{mark}{term.text}" if term.kind == "blank" else notation


def from_rdflib(graph: Any, names: Names = "local", literals: Literals = "shared") -> Structure:
    """The structure of an ``rdflib.Graph``: a node per term, an edge per statement, as the reader ``rdf`` makes it.

    Args:
        graph: a graph, or one of a data set.
        names: labels are ``local`` names, ``full`` IRIs, or ``terms`` in N-Triples.
        literals: equal ones are one node (``shared``), each is a separate node (``own``), or left out (``none``).

    Raises:
        ReadError: there is a formula or variable of N3, which are not in RDF.
        StructureError: there is no statement.
    """
    return item_of(graph_of(graph), "", names=names, literals=literals).structure


def to_rdflib(structure: Structure, base: str | None = None) -> rdflib.Graph:
    """The structure as an ``rdflib.Graph``, a statement per edge; name, units and features are lost.

    Args:
        structure: directed, with an edge at each node.
        base: prefix of the IRIs for labels that are not terms in N-Triples.

    Raises:
        ConversionError: the structure cannot be written in RDF.
    """
    with needing("rdflib", "kg"):
        import rdflib
    graph = rdflib.Graph()
    try:
        for statement in statements(structure, {}, base):
            subject, predicate, thing = map(_to_rdflib, statement)
            graph.add((subject, predicate, thing))
    except StructureError as error:
        raise ConversionError(error.message).at(*error.places) from None
    return graph


def _read(graph: Any, names: Names = "local", literals: Literals = "shared") -> Iterator[Structure]:
    import rdflib

    for option, value, known in (
        ("names", names, ("local", "full", "terms")),
        ("literals", literals, ("shared", "own", "none")),
    ):
        if value not in known:
            raise ConversionError(f"{option} is {value!r}; give one of {', '.join(known)}")
    if not isinstance(graph, rdflib.Dataset):
        yield from_rdflib(graph, names, literals)
        return
    for each in graph.graphs():
        if len(each):
            yield item_of(graph_of(each), str(each.identifier), names=names, literals=literals).structure


def _to_rdflib(term: Term) -> Any:
    import rdflib

    if term.kind == "blank":
        return rdflib.BNode(term.text)
    if term.kind == "iri":
        return rdflib.URIRef(term.text)
    datatype = rdflib.URIRef(term.datatype) if term.datatype else None
    return rdflib.Literal(term.text, lang=term.language or None, datatype=datatype, normalize=False)


add_converter("rdflib", "rdflib.Graph", "graphs of statements, and back", _read, to_rdflib)
