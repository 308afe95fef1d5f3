"""``structpe data``: list, fetch and verify data sets."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from structpe.cli.base import Command, UsageError, path_of, print_table, refuse_idle
from structpe.errors import StructPEError
from structpe.system.progress import progress_bar

__all__ = ["DataCommand"]

DO = ("list", "show", "get", "verify")
FEW, MANY = 10, 25
"""Number of files shown without ``--all``; a set may have hundreds."""


class DataCommand(Command, name="data"):
    """List, get and verify data sets.

    list            all sets that have a card, or those of one --kind
    show NAME       the card of a set: citation, licence, addresses of its files, splits
    get NAME        fetch a set, or use a local copy with --from; resumes after an interruption
    verify NAME     compare each file with its card, or with the first download; FOLDER is the folder of the set. A file
                    that was never fetched is not an error; a file that has disappeared is

    Each set has a folder below --to, $STRUCTPE_DATA, or the cache folder of the system. Files without a known checksum
    are trusted on first use, and the command says so.
    """

    example = (
        "structpe data list --kind trees\n"
        "structpe data get ud-czech-cltt --to data\n"
        "structpe data get ldc2020t02 --from amr_annotation_3.0\n"
        "structpe data verify ud-czech-cltt --to data --read"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("do", metavar="DO", choices=DO, help="list, show, get or verify")
        parser.add_argument("name", metavar="NAME", nargs="?", help="the data set; 'structpe data list' names them")
        parser.add_argument("folder", metavar="FOLDER", nargs="?", type=path_of, help="verify: the folder of the set")
        parser.add_argument("--kind", metavar="KIND", help="list: only sets of this kind")
        parser.add_argument("--json", action="store_true", help="list, show: print JSON")
        parser.add_argument("--to", metavar="FOLDER", type=path_of, help="the folder of the folders of sets")
        parser.add_argument("--from", dest="source", metavar="FILE", type=path_of, help="get: a local file or folder")
        parser.add_argument(
            "--file", metavar="PART", dest="parts", action="append", default=[], help="get, verify: only this part"
        )
        parser.add_argument("--all", action="store_true", help="show, get, verify: every file, not only the first few")
        parser.add_argument("--read", action="store_true", help="verify: read the splits too, and count their items")

    def run(self, given: Namespace) -> None:
        _check(given)
        {"list": _list, "show": _show, "get": _get, "verify": _verify}[given.do](given)


def _check(given: Namespace) -> None:
    """Check the combination of arguments.

    Raises:
        UsageError: an argument is missing, or belongs to another action.
    """
    if given.do == "list" and given.name is not None:
        raise UsageError(f"list takes no name; for the card of a set: structpe data show {given.name}")
    if given.do != "list" and given.name is None:
        raise UsageError(f"data {given.do} needs the NAME of a set; 'structpe data list' names them")
    belongs: dict[str, tuple[str, ...]] = {
        **{"folder": ("verify",), "kind": ("list",), "source": ("get",), "read": ("verify",)},
        **{"parts": ("get", "verify"), "json": ("list", "show"), "to": ("list", "get", "verify")},
        "all": ("show", "get", "verify"),
    }
    for key, actions in belongs.items():
        if given.do not in actions and vars(given)[key]:
            name = {"folder": "FOLDER", "source": "--from", "parts": "--file"}.get(key, f"--{key}")
            raise UsageError(f"data {given.do} takes no {name}; {name} belongs to {' and '.join(actions)}")
    if given.json:
        refuse_idle(given, "with --json, which prints everything", "--all", "--to")
    if given.folder is not None:
        refuse_idle(given, "with FOLDER", "--to")


def _list(given: Namespace) -> None:
    from structpe.datasets import cards, find

    known = cards()
    kinds = sorted({card.kind for card in known.values()})
    if given.kind is not None and given.kind not in kinds:
        raise UsageError(f"there are no data sets of kind {given.kind!r}; kinds: {', '.join(kinds)}")
    rows = [card for card in known.values() if given.kind in (None, card.kind)]
    if given.json:
        _print_json([asdict(card) for card in rows])
        return
    here = {card.name: "yes" if card.pattern is None and find(card.name, given.to).is_there else "" for card in rows}
    print_table(
        ("name", "kind", "size", "here", "licence", "what it is"),
        [(card.name, card.kind, _size(card.size), here[card.name], card.licence, card.description) for card in rows],
        numeric=("size",),
        long=("licence", "what it is"),
    )


def _show(given: Namespace) -> None:
    from structpe.datasets import card as card_named

    card = card_named(given.name)
    if given.json:
        _print_json(asdict(card))
        return
    for key in ("name", "kind", "description", "licence", "citation", "homepage", "reader", "notes"):
        if value := getattr(card, key):
            print(f"{key + ':':13}{' '.join(str(value).split())}")
    if card.benchmarks:
        print(f"{'benchmarks:':13}{', '.join(entry.name for entry in card.benchmarks)}")
    if card.splits:
        rows = [(name, _count(part.items), _names(part.file, given.all)) for name, part in card.splits.items()]
        print()
        print_table(("split", "items", "files"), rows, numeric=("items",))
    print()
    kept = card.files if given.all else card.files[:FEW]
    files = [(f.name, f.part, _size(f.bytes), f.sha256 or f.digest or "not known", f.url or "-") for f in kept]
    print_table(("file", "part", "size", "checksum", "url"), files, numeric=("size",))
    if more := len(card.files) - len(kept):
        print(f"and {more} more files; --all shows them, --json everything")


def _get(given: Namespace) -> None:
    from structpe.datasets import Hooks, get

    lines = _FewLines(given.all)
    try:
        with progress_bar("fetching") as report:
            hooks = Hooks(say=lines.say, tell=lambda name: report)
            corpus = get(given.name, given.to, given.source, given.parts, hooks)
    finally:
        lines.end()
    print(corpus.folder)


class _FewLines:
    """Prints the first few lines, and the number of the others."""

    def __init__(self, all: bool) -> None:
        self.all, self.count = all, 0

    def say(self, line: str) -> None:
        """Print a line, unless there have been many."""
        self.count += 1
        if self.all or self.count <= FEW:
            print(line, file=sys.stderr)

    def end(self) -> None:
        """Print how many lines were left out."""
        if not self.all and self.count > FEW:
            print(f"and {self.count - FEW} more lines such as these; --all prints them", file=sys.stderr)


def _verify(given: Namespace) -> None:
    from structpe.datasets import Corpus, card, find, verify

    corpus = find(given.name, given.to)
    if given.folder is not None:
        inner = given.folder / corpus.folder.name
        corpus = Corpus(card(given.name), inner if inner.is_dir() else given.folder)
    with progress_bar("reading") as progress:
        report = verify(corpus, given.read, tuple(given.parts), lambda name: progress)
    states = [("file", state) for state in report.files] + [("split", state) for state in report.splits]
    _print_states(states, given.all)
    fetch = f"structpe data get {given.name}"
    if not any(state.there for _, state in states):
        raise StructPEError(f"the folder has no file of the set; fetch it: {fetch}").at(corpus.folder)
    if not report.good:
        bad = sum(not state.good for _, state in states)
        raise StructPEError(f"{bad} of {len(states)} are not as they should be; fetch them again: {fetch}").at(
            corpus.folder
        )


def _print_states(states: list[tuple[str, Any]], all: bool) -> None:
    """Print a row for each state, but only the first of many equal ones; then the number of each kind."""
    counts = Counter(state.word for _, state in states)
    seen: Counter[str] = Counter()
    rows = []
    for what, state in states:
        seen[state.word] += 1
        if all or counts[state.word] <= MANY or seen[state.word] <= FEW:
            rows.append((what, state.name, state.word, state.detail))
    print_table(("", "name", "state", "detail"), rows, long=("detail",))
    if len(rows) < len(states):
        print(f"and {len(states) - len(rows)} more; --all shows them")
    if len(counts) > 1:
        print("\n" + ", ".join(f"{count} {word}" for word, count in counts.items()))


def _names(names: Sequence[str], all: bool) -> str:
    kept = names if all or len(names) <= 3 else names[:2]
    return ", ".join([*kept, *([f"and {len(names) - len(kept)} more"] if len(kept) < len(names) else [])])


def _print_json(data: Any) -> None:
    print(json.dumps(data, indent=1, ensure_ascii=False))


def _count(items: int | None) -> str:
    return "" if items is None else f"{items:,}"


def _size(size: int | None) -> str:
    if size is None:
        return ""
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size:,} B"
