"""SCAN and COGS: sentences, and the actions or the logical form that they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from structpe.errors import ReadError
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import cut_off, ended_lines, longer, shown
from structpe.structure import path as path_graph

__all__ = ["cogs", "scan"]

COMMAND, ACTIONS = "IN:", " OUT:"
ACTIONS_OF_SCAN = ("I_JUMP", "I_LOOK", "I_RUN", "I_TURN_LEFT", "I_TURN_RIGHT", "I_WALK")


def _attempts(
    path: Path, known: Iterable[str], ending: Callable[[str], Sequence[str]], item: Callable[[str, int, str], Item]
) -> Iterator[Yielded]:
    """An attempt per line. A last line whose final word only begins a word of the lines before was cut off."""
    seen = set(known)
    for number, line, ended in ended_lines(path):
        if line.strip():
            words = ending(line)
            if not ended and (cut := cut_off(line, number, longer(words[-1], seen) if words else "")) is not None:
                yield cut
                return
            seen.update(words)
            yield attempt(partial(item, line, number, path.name), line=number)


@reader("scan", ".scan", also=".txt")
def scan(path: Path) -> Iterator[Yielded]:
    """SCAN, a line ``IN: jump twice OUT: I_JUMP I_JUMP`` each: path graphs of the command's words.

    ``texts`` has the actions.
    """
    return _attempts(path, ACTIONS_OF_SCAN, lambda line: line.rpartition(ACTIONS)[2].split(), _scan_item)


def _scan_item(line: str, number: int, file: str) -> Item:
    command, separator, actions = line.partition(ACTIONS)
    words = command.removeprefix(COMMAND).split()
    if not line.startswith(COMMAND) or not separator or not words or ACTIONS in actions:
        raise ReadError(f"the line is {shown(line)}; 'IN: words OUT: actions' is needed")
    return Item(path_graph(words, name=f"{file}:{number}"), (" ".join(actions.split()),), str(number))


@reader("cogs", ".cogs", also=".tsv")
def cogs(path: Path) -> Iterator[Yielded]:
    """COGS, a sentence, its logical form and its type per line, separated by tabs: path graphs of the words.

    ``texts`` has the logical form, ``metadata["type"]`` the type of the example: ``in_distribution``, ``primitive``, or
    one of 21 kinds of generalization.
    """
    return _attempts(path, (), lambda line: [line.rpartition("\t")[2]], _cogs_item)


def _cogs_item(line: str, number: int, file: str) -> Item:
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) != 3 or not all(columns):
        raise ReadError(f"the line is {shown(line)}; give a sentence, a logical form and a type, separated by tabs")
    sentence, form, kind = columns
    return Item(path_graph(sentence.split(), name=f"{file}:{number}"), (form,), str(number), {"type": kind})
