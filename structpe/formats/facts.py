"""Facts with texts: tables and lines of JSON whose columns are named, and the same as mappings in Python."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from structpe.errors import ReadError, StructureError, listed
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.tables import rows
from structpe.formats.text import is_missing, lines, shown
from structpe.formats.triples import HEADERS, triples
from structpe.plain import from_json

__all__ = [
    "NAMED",
    "USUAL",
    "Columns",
    "Line",
    "as_texts",
    "columns_of",
    "coming_back",
    "facts",
    "facts_of",
    "grouped",
    "item_of_facts",
    "refuse_near",
]

USUAL: Mapping[str, tuple[str, ...]] = {
    **dict(zip(("subject", "relation", "object"), HEADERS, strict=True)),
    "facts": ("facts", "triples", "triple_set", "tripleset", "fact", "triple"),
    "text": ("text", "texts", "sentence", "sentences", "reference", "references", "lex", "target_text", "description"),
    "id": ("id", "eid", "graph_id", "item_id", "item", "entry", "example", "group", "graph"),
}
"""The usual names of columns, the likeliest first; blanks, hyphens and capitals in names do not matter."""
ONE = ("subject", "relation", "object")
BETWEEN, PARTS = ";", "|"
SKIP = "or skip such items: on_error: skip, --on-error skip"
NAMED = "Its name is the option"
"""What an error says of a column that an option names and is not there, before the name of the option."""


class Columns(NamedTuple):
    """The name of each column; None if there is none. Either ``facts`` is one, or all of the first three are."""

    subject: str | None = None
    relation: str | None = None
    object: str | None = None
    facts: str | None = None
    text: str | None = None
    id: str | None = None


Row: TypeAlias = Mapping[str, Any]


class Line(NamedTuple):
    """A row of a table: the number of its line, its cells by name, its columns, and how many cells it has.

    What its number counts is ``unit``.
    """

    number: int
    cells: Row
    columns: Columns
    width: int | None = None
    unit: str = "line"

    @property
    def place(self) -> str:
        """Where it is, for errors."""
        return f"{self.unit} {self.number}"

    def cell(self, role: str) -> Any:
        """A cell by its role; None if it is empty, or there is none."""
        name = getattr(self.columns, role)
        value = None if name is None else self.cells.get(name)
        return None if is_missing(value) or value == "" else value


@reader("facts", ".jsonl", also=".tsv .csv .txt .ndjson")
def facts(
    path: Path,
    subject: str | None = None,
    relation: str | None = None,
    object: str | None = None,
    facts: str | None = None,
    text: str | None = None,
    id: str | None = None,
    header: Sequence[str] | None = None,
    delimiter: str | None = None,
    quotes: bool = True,
    between: str = BETWEEN,
) -> Iterator[Yielded]:
    """Facts with texts: TSV or CSV with a header, or an object of JSON per line.

    A row has one fact, in three columns, or several, in one column. Rows that follow each other with the same id are
    one graph, with all their facts and texts; where there is one fact in a row and no column of ids, so are those with
    the same text. If an id comes back later, all its rows are bad items: a graph would lack a fact. A row without the
    id or text that says its graph makes the graph of the rows before it a bad item. A fact that a graph has twice is
    one edge. Other columns are metadata.

    Names of columns that are given may differ from those of the table in capitals, where only one such column is there.

    Args:
        path: a file; ``.jsonl`` and ``.ndjson`` are lines of JSON, others are tables.
        subject, relation, object: names of the columns of one fact; by default usual ones, such as ``head``.
        facts: name of a column with several facts: ``Osk | teacher | Ida; Osk | birthPlace | Orrin``, or a list of
            lists, in JSON or as Python writes it; by default ``facts`` or ``triples``.
        text: name of the column with texts; by default ``text`` or a similar one, of which there may be one only. New
            facts, for which a text is to be written, need none: without a column of a given name there are no texts.
        id: name of the column with ids; by default ``id`` or a similar one.
        header: names of the columns of a table without a header.
        delimiter: separator of cells; None for a tab if the first line has one, else for that of ``,`` and ``;`` that
            it has more of.
        quotes: whether a cell may be in quotation marks; if not, they are characters as any others.
        between: what separates several facts in a cell, as line ends do.

    Raises:
        ReadError: the header lacks a column, a row does not belong to it, or rows of one id do not follow each other.
    """
    asked = {"subject": subject, "relation": relation, "object": object, "facts": facts, "text": text, "id": id}

    def found(file: Path) -> Iterator[Line | ReadError]:
        if path.suffix in (".jsonl", ".ndjson"):
            return _of_json(file, asked)
        return _of_table(file, asked, header, delimiter, quotes)

    back = coming_back(found(Path(str(path))))  # whose bytes are not counted as read
    for own, group in grouped(found(path), back):
        first: Any = group[0]
        if isinstance(first, ReadError):
            yield first
        else:
            yield attempt(partial(_item, group, own, path.name, between), str(first.cell("id") or ""), first.number)


def grouped(found: Iterable[Any], back: Mapping[str, int]) -> Iterator[tuple[str, list[Any]]]:
    """The id and the rows of each graph, or the error of one of them; what is not a :class:`Line` stays alone.

    Args:
        found: rows, and anything else between them.
        back: what :func:`coming_back` says of them.
    """
    number = 0
    for _, together in groupby(_with_keys(found), itemgetter(0)):
        group = [line for _, line in together]
        first = group[0]
        number += not isinstance(first, ReadError)
        if not isinstance(first, Line):
            yield str(number), group
            continue
        wrong = _parted(first, back) or next(filter(None, map(_unknown_graph, group)), None)
        given = first.cell("id")
        yield str(number if given is None else given), group if wrong is None else [wrong]


def _key(line: Any) -> tuple[Any, ...]:
    """Equal for rows of one graph."""
    if not isinstance(line, Line):
        return ("other", object())
    given = line.cell("id")
    if line.columns.facts is not None:
        return ("row", line.number) if given is None else ("facts", str(given), repr(line.cell("facts")))
    if given is not None:
        return ("id", str(given))
    text = line.cell("text")
    return ("row", line.number) if text is None or line.columns.id is not None else ("text", repr(text))


def _with_keys(found: Iterable[Any]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The rows, each with what is equal for those of one graph; a row of an unknown graph may be of the one before."""
    before: tuple[Any, ...] = ("",)
    for line in found:
        if not isinstance(line, Line) or before[0] not in ("id", "text") or _unknown_graph(line) is None:
            before = _key(line)
        yield before, line


def _unknown_graph(line: Line) -> ReadError | None:
    """The error of a row with one fact, of which nothing says the graph."""
    id, columns = line.cell("id"), line.columns
    if columns.facts is not None:
        return None
    if id is None and columns.id is not None:
        wrong = f"the cell of column {shown(columns.id)} is empty; fill it, as rows of one graph have the same id"
        return ReadError(f"{wrong}; {SKIP}").at(line.place)
    if id is None and columns.text is not None and line.cell("text") is None:
        wrong = f"the cell of column {shown(columns.text)} is empty, and no column of ids says whose fact this is"
        return ReadError(f"{wrong}; fill it, or add a column 'id'; {SKIP}").at(line.place)
    return None


def coming_back(found: Iterable[Any]) -> dict[str, int]:
    """The ids of rows with one fact that do not all follow each other, with the line where each comes back."""
    seen: set[str] = set()
    back: dict[str, int] = {}
    last = None
    try:
        for line in found:
            if not isinstance(line, Line) or line.columns.facts is not None or line.columns.id is None:
                if isinstance(line, Line) and line.width is not None:
                    break  # all rows of a table are of one kind
                last = None
            elif (given := line.cell("id")) is not None:
                if (own := str(given)) != last and own in seen:
                    back.setdefault(own, line.number)
                seen.add(own)
                last = own
    except ReadError:
        pass  # it is raised again where the rows are read
    return back


def _parted(line: Line, back: Mapping[str, int]) -> ReadError | None:
    """The error of a row with one fact whose graph has rows elsewhere."""
    id, columns = str(line.cell("id")), line.columns
    if columns.facts is not None or columns.id is None or id not in back:
        return None
    where = f"comes back in {line.unit} {back[id]}" if line.number < back[id] else "was read before"
    wrong = f"{shown(id)} {where}; rows of one graph must follow each other, so sort them by {shown(columns.id)}"
    return ReadError(wrong).at(line.place)


def _item(group: Sequence[Line], id: str, file: str, between: str) -> Item:
    empty = False
    for line in group:
        lacking = [role for role in ONE if line.cell(role) is None]
        empty |= line.columns.facts is None and 0 < len(lacking) < len(ONE)
        short = line.width is not None and line.width < len(line.cells)
        if short and line.columns.facts is None and 0 < len(lacking) < len(ONE):
            wrong = f"the row of line {line.number} has {line.width} of {len(line.cells)} cells"
            raise ReadError(f"{wrong}, and no {' and no '.join(lacking)}; fill it, or check the separator")
    try:
        return item_of_facts([(line.cells, line.columns) for line in group], id, f"{file}:{id}", between)
    except StructureError as error:
        error.message += f"; {SKIP}" if empty else ""
        raise


def item_of_facts(group: Sequence[tuple[Row, Columns]], id: str, name: str, between: str = BETWEEN) -> Item:
    """The item of the rows of one graph.

    Raises:
        ReadError, StructureError: there is no fact, or something in the rows is not a fact or a text.
    """
    known: dict[tuple[str, ...], None] = {}
    texts: dict[str, None] = {}
    for cells, columns in group:
        line = Line(0, cells, columns)
        parts = [line.cell(role) for role in ONE]
        if columns.facts is not None:
            known |= dict.fromkeys(map(tuple, facts_of(line.cell("facts"), between)))
        elif any(part is not None for part in parts):  # a row without a fact has another text
            known[tuple(map(_part, parts))] = None
        texts |= dict.fromkeys(as_texts(line.cell("text")))
    if not known:
        raise ReadError("it has no fact; give subject, relation and object of one at least")
    cells, columns = group[0]
    other = {key: value for key, value in cells.items() if key not in columns and not is_missing(value)}
    return Item(triples(list(known), name), tuple(texts), id, other)


def columns_of(names: Sequence[str], asked: Mapping[str, str | None], header: bool = True) -> Columns:
    """The columns of a table or the keys of an object, by their names.

    Args:
        names: all names.
        asked: names by role; None for one of the usual ones.
        header: whether a line of a file names them, for the error.

    Raises:
        ReadError: there is no such column, or none of a role that is needed, or two ways to give facts or texts. Texts
            need no column: they are needed where one learns from them.
    """
    given = {role: _spelt(name, names) for role, name in asked.items() if name is not None}
    without_texts = "text" in given and given["text"] not in names
    if without_texts:
        given.pop("text")
    if lacking := next(((role, name) for role, name in given.items() if name not in names), None):
        role, name = lacking
        wrong = f"there is no column {shown(name)}; there are {listed(map(shown, names))}"
        raise ReadError(f"{wrong}. {NAMED} {role}; give one of these, or leave the option out")
    plain = {_plain(name): name for name in reversed(names) if name not in given.values()}
    found = {role: next((plain[each] for each in usual if each in plain), None) for role, usual in USUAL.items()}
    if "facts" in given:
        found |= dict.fromkeys(ONE)
    elif set(ONE) & set(given):
        found["facts"] = None
    if without_texts:
        found["text"] = None  # never of another name
    elif "text" not in given and len(several := [plain[each] for each in USUAL["text"] if each in plain]) > 1:
        said = f"{listed(map(shown, several[:-1]))} and {shown(several[-1])} could each be the texts"
        name = f"name one with the option text, such as text={several[0]}" if asked else "leave all but one out"
        raise ReadError(f"{said}; {name}")
    columns = Columns(**found | given)
    if columns.facts is None and (without := [role for role in ONE if getattr(columns, role) is None]):
        raise _no_column(names, without, header)
    if columns.facts is not None and all(getattr(columns, role) is not None for role in ONE):
        each = f"{shown(columns.facts)} and {shown(str(columns.subject))}"
        raise ReadError(f"there are facts in the columns {each}; say which: facts={columns.facts} or subject=...")
    return columns if columns.facts is None else columns._replace(**dict.fromkeys(ONE))


def refuse_near(names: Iterable[Any], known: Sequence[str]) -> None:
    """Check that no name is nearly a known one, such as ``txt`` or ``sentense``; none of these is among them.

    Raises:
        ReadError: one is.
    """
    for name in names:
        if near := _near(str(name), known):
            raise ReadError(f"there is the key {shown(str(name))}. Did you mean {near!r}? If not, rename it")


def _near(name: str, known: Sequence[str]) -> str:
    """The known name that a given one is a slip of; nothing if there is none."""
    long = [each for each in known if len(each) > 3 and abs(len(each) - len(name)) < 2]
    return next(iter(get_close_matches(name.lower(), long, 1, SLIP)), "")


SLIP = 0.82
"""How alike a slip of a name is to it: ``txt`` and ``text`` are, ``test`` and ``text`` are not."""


def _spelt(name: str, names: Sequence[str]) -> str:
    """The name among those of a table that a given one means: itself, or the only one that differs in capitals."""
    alike = [each for each in names if each.lower() == name.lower()]
    return alike[0] if name not in names and len(alike) == 1 else name


def _no_column(names: Sequence[str], lacking: Sequence[str], header: bool) -> ReadError:
    there = listed(map(shown, names), 6)
    if not header:
        keys = "'subject', 'relation' and 'object', or 'facts', a list of such triples"
        slips = [(name, _near(name, (*ONE, "facts", "structure"))) for name in names]
        meant = "".join(f" Did you mean {near!r} by {shown(name)}?" for name, near in slips if near not in ("", name))
        return ReadError(f"there is no key for the {' and the '.join(lacking)}; there are {there}.{meant} Give {keys}")
    wrong = f"the first line names no column for the {' and the '.join(lacking)}; it has {there}"
    named = f"Name columns that are called otherwise, such as {lacking[0]}=NAME"
    return ReadError(f"{wrong}. {named}; for a file without a header give header=[subject, relation, object, text]")


def _plain(name: str) -> str:
    return "_".join(name.strip().lower().replace("-", " ").replace("_", " ").split())


def _of_table(
    path: Path,
    asked: Mapping[str, str | None],
    header: Sequence[str] | None,
    delimiter: str | None,
    quotes: bool,
) -> Iterator[Line | ReadError]:
    """The rows of a table; those whose cells are all empty are left out."""
    found = rows(path, delimiter or _delimiter(path), header is None, quotes, CHECK)
    names = [name.strip() for name in header or next(found)[1]]
    try:
        columns = columns_of(names, asked)
    except ReadError as error:
        raise error if header is not None else error.at("line 1") from None
    for number, row in found:
        cells = [cell.strip() for cell in row]
        if any(cells[len(names) :]):
            wrong = f"the row has {len(row)} cells, the header {len(names)}; quote cells that hold the separator"
            longer = ReadError(wrong).at(f"line {number}")
            if columns.facts is None:
                raise longer  # a graph may lack a fact
            yield longer
        elif any(cells):
            yield Line(number, dict(zip(names, [*cells, *[""] * len(names)], strict=False)), columns, len(row))


CHECK = "check the quotes, or give quotes=False where they are characters as any others"


def _delimiter(path: Path) -> str:
    first = next((line for _, line in lines(path)), "")
    return "\t" if "\t" in first else ";" if first.count(";") > first.count(",") else ","


def _of_json(path: Path, asked: Mapping[str, str | None]) -> Iterator[Line | ReadError]:
    """The objects of a file with one in each line."""
    one = False
    for number, line in lines(path):
        if not line.strip():
            continue
        try:
            cells = from_json(line)
            if not isinstance(cells, dict):
                raise ReadError(f"the line holds {shown(line)}; give an object of JSON, such as {EXAMPLE}")
            columns = columns_of(list(cells), asked, header=False)
        except (ValueError, ReadError) as wrong:
            reason = wrong.message if isinstance(wrong, ReadError) else f"the line is not JSON: {wrong}"
            error = ReadError(reason).at(f"line {number}")
            if one:
                raise error from None  # a graph may lack a fact
            yield error
        else:
            one = columns.facts is None
            yield Line(number, cells, columns)


EXAMPLE = '{"facts": [["Osk", "teacher", "Ida"]], "text": "Ida taught Osk."}'


def facts_of(value: Any, between: str = BETWEEN) -> list[list[str]]:
    """Facts (subject, relation, object) from plain data: a list of them, or a text.

    Args:
        value: a list of triples, mappings or texts such as ``Osk | teacher | Ida``; or a text of several.
        between: what separates several facts in a text, as line ends do.

    Raises:
        ReadError: something is not a fact.
    """
    if isinstance(value, str):
        value = _listed(value.strip(), between)
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise ReadError(f"the facts are {repr(value)[:80]}; give a list of triples (subject, relation, object)")
    if len(value) == 3 and all(isinstance(each, str) and PARTS not in each for each in value):
        raise ReadError(f"facts is one triple, {repr(value)[:80]}; give a list of triples, such as [{tuple(value)!r}]")
    return [[_part(part) for part in _parts(each)] for each in value]


def _listed(text: str, between: str) -> Any:
    if not text.startswith("["):
        return [each for line in text.splitlines() for each in line.split(between) if each.strip()]
    try:
        return from_json(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)  # as pandas writes a list into a table
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ReadError(f"{shown(text)} begins as a list and is none; write [['Osk', 'teacher', 'Ida']]") from None


def _parts(fact: Any) -> Iterable[Any]:
    if isinstance(fact, str):
        return [part.strip() for part in fact.split(PARTS)]
    if isinstance(fact, Mapping):
        columns = columns_of([str(key) for key in fact], {}, header=False)
        return [fact.get(getattr(columns, role)) for role in ONE]
    if not isinstance(fact, (list, tuple)):
        raise ReadError(f"a fact is {repr(fact)[:80]}; give subject, relation and object")
    return fact


def _part(part: Any) -> str:
    """A part of a fact as text; an empty one is an error of :func:`triples`."""
    if is_missing(part):
        return ""
    if isinstance(part, (str, int, float)):
        return str(part).strip()
    raise ReadError(f"a part of a fact is {repr(part)[:80]}; give a text or a number")


def as_texts(value: Any) -> tuple[str, ...]:
    """The texts of a cell: one, or a list; blank ones are left out.

    Raises:
        ReadError: it is something else.
    """
    several = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
    if wrong := [each for each in several if not isinstance(each, str)]:
        raise ReadError(f"the text is {repr(wrong[0])[:80]}; give a text, or a list of texts")
    return tuple(text for each in several if (text := each.strip()))
