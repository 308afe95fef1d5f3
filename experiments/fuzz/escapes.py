"""What commands print: files and names with characters that a terminal obeys."""

from __future__ import annotations

import io
import random
import unicodedata
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from mutate import mutated

from structpe.cli.main import main
from structpe.errors import StructPEError

__all__ = ["make", "take"]

ESCAPES = (
    "\x1b[2J",
    "\x1b]0;a\x07",
    "\x9b2J",
    "\x85",
    "\u2028",
    "\u202e",
    "\u2066",
    "\x7f",
    "\r",
    "\x08",
    "\x00",
    "\udcff",
)
DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


READER = {"conllu": "conllu", "amr": "amr"}
TEXTS = [
    (format, "\n".join(file.read_text(encoding="utf-8").split("\n")[:25]) + "\n")
    for format in READER
    for file in sorted((Path(__file__).parent / "seeds").glob(f"{format}-*"))
]


class Obeyed(Exception):
    """Something was printed that a terminal obeys."""


def make(chance: random.Random) -> bytes:
    """A file of a format with control characters somewhere, and a name with such."""
    format, text = chance.choice(TEXTS)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(ESCAPES) + text[at:]
    if chance.random() < 0.5:
        text = mutated([text.encode("utf-8", "surrogateescape")], chance.randrange(1 << 30), 0).decode(
            "utf-8", "surrogateescape"
        )
    name = "".join(chance.sample([each for each in ESCAPES if each != "\0"], 2))
    return f"{format}\n{name}\n{text}".encode("utf-8", "surrogateescape")


def take(content: bytes, folder: Path) -> None:
    """Whatever a command says of it, on a terminal, is not obeyed."""
    format, name, text = content.decode("utf-8", "surrogateescape").split("\n", 2)
    file = folder / f"a{name}.{format}"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    out, err = Terminal(), Terminal()
    words = [
        "convert",
        str(file),
        str(folder / f"b{name}.{format}"),
        "--reader",
        READER[format],
        "--writer",
        READER[format],
    ]
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*words, "--on-error", "skip"] if len(text) % 2 else words)
    told = out.getvalue() + err.getvalue()
    if letters := {f"U+{ord(letter):04X}" for letter in told if obeyed(letter)}:
        raise Obeyed(f"{', '.join(sorted(letters))} was printed")
    if "bug in structpe" in told:
        raise AssertionError(told)
    if code:
        raise StructPEError(told)


class Terminal(io.StringIO):
    """A stream that escapes what it is given, as on a terminal. To rich it is not a terminal."""

    def isatty(self) -> bool:
        return False


def obeyed(letter: str) -> bool:
    """Whether a terminal does something for a character, by what Unicode says of it."""
    kind = unicodedata.category(letter)
    return (kind in ("Cc", "Zl", "Zp", "Cs") and letter not in "\n\t") or unicodedata.bidirectional(
        letter
    ) in DIRECTIONS
