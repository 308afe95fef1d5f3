"""Command lines in running text: each ``structpe ...`` of a page, a docstring, a message or an example can be typed.

Fenced blocks of pages are run by ``test_docs``; those that are not run are at least parsed here, like all others.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache

import pytest

from structpe.cli import COMMANDS, main
from structpe.cli.base import UsageError
from tests.modules import ROOT
from tests.together import together

PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "howto").glob("*.md"), *ROOT.glob("*.md")])
INLINE = re.compile(r"(?<![`\w])`(structpe [^`\n]+)`(?!`)")
QUOTED = re.compile(r"(?:``|')(structpe [^`'{}\n]+)(?:``|')")
BLOCK = re.compile(r"^```(?:console|bash|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def of_pages() -> Iterator[tuple[str, str]]:
    """Where a line is, and the line: those in running text, and those of fenced blocks."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in INLINE.findall(text):
            yield page.name, found
        for block in BLOCK.findall(text):
            for line in block.replace("\\\n", " ").splitlines():
                if line.removeprefix("$ ").startswith("structpe "):
                    yield page.name, line.removeprefix("$ ")


def of_code() -> Iterator[tuple[str, str]]:
    """The same of docstrings and messages, and of the examples of commands."""
    for file in sorted([*(ROOT / "structpe").rglob("*.py"), *(ROOT / "examples").glob("*.py")]):
        text = file.read_text(encoding="utf-8")
        if not re.search(r"structpe\s", text):  # most files; parsing takes time
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for found in QUOTED.findall(" ".join(node.value.split())):
                    yield str(file.relative_to(ROOT)), found
    for name, command in COMMANDS.items():
        for line in command.example.replace("\\\n", " ").splitlines():
            yield f"example of {name}", line


LINES = sorted({*of_pages(), *of_code()})


parser = cache(main.parser)


def words_of(line: str) -> list[str]:
    """The words after ``structpe``, up to where the shell goes on with something else."""
    words = shlex.split(line.replace("\\|", "|"), comments=True)[1:]
    end = next((i for i, word in enumerate(words) if word in ("|", ">", "&&", ";", "2>")), len(words))
    return words[:end]


def wrong(line: str) -> str:
    """Why a line cannot be typed; nothing where it can, or where it only names a command."""
    words = words_of(line)
    if words[0] == "COMMAND":  # it stands for any
        return ""
    cut = "..." in words
    words = [word for word in words if word != "..."]
    try:
        given, rest = parser().parse_known_args(words)
    except UsageError as error:
        named = words[0] in COMMANDS and all(word.startswith("--") for word in words[1:])
        lacks = any(each in str(error) for each in ("arguments are required", "expected one", "expected at least one"))
        return "" if (named or cut) and lacks else str(error)
    except SystemExit:
        return ""  # --help, --version
    return f"unknown: {rest}" if rest and not COMMANDS[given.command].overrides else ""


def test_lines_are_found() -> None:
    assert len(LINES) > 60
    assert ("encodings.md", "structpe encodings --structure tree") in LINES
    assert ("structpe/cli/_inputs.py", "structpe encodings") in LINES


@together(
    "line, right",
    [
        ("structpe positions --structure tree | head -1", True),
        ("structpe train", True),
        ("structpe encode FILE ...", True),
        ("structpe trian a.yaml", False),
        ("structpe positions --structure trees", False),
        ("structpe cite t5 --all", False),
        ("structpe encode FILE", False),
        ("structpe convert a b c", False),
    ],
)
def test_what_cannot_be_typed_is_seen(line: str, right: bool) -> None:
    assert (wrong(line) == "") is right


def test_every_line_can_be_typed() -> None:
    troubles = [f"{where}: {line}: {trouble}" for where, line in LINES if (trouble := wrong(line))]
    assert not troubles, "\n".join(troubles)


# Most are in several places; each is run once.
CHEAP = {
    tuple(words_of(line)): (where, line)
    for where, line in reversed(LINES)
    if words_of(line)[:1] in (["cite"], ["positions"]) or words_of(line)[:2] in (["data", "list"], ["data", "show"])
}


TRIED = [each for each in CHEAP.values() if not re.search(r"\b[A-Z]{4,}\b|--import", each[1])]
"""Without those that stand for other words, or take a file of the reader's own."""


@pytest.mark.usefixtures("listed_once")
@pytest.mark.parametrize("each", TRIED, ids=": ".join)
def test_a_line_that_is_cheap_runs(each: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    where, line = each
    words = words_of(line)
    if len(words) == 1 and words[0] != "positions":
        pytest.skip("it names the command only")
    assert main.main(words) == 0, f"{where}: {capsys.readouterr().err}"
    assert capsys.readouterr().out
