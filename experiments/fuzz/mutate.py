"""Damage to files: a damaged file is a function of seed files, a seed and a number, so that any can be made again."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

__all__ = ["grown", "mutated"]

GROWN = 0.01
"""Of so many files a piece is repeated up to 64 KiB."""
Change = Callable[[bytes, random.Random], bytes]

TOKENS = (
    *(b"\x00", b"\xff", b"\xc3", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f\x91\xa9\xe2\x80\x8d"),
    *(b"\n", b"\r", b"\r\n", b"\n\n", b"\t", b"\t\t", b" ", b"\x0b", b"\x0c", b"\x85"),
    *(b"(", b")", b"((((((((", b"))))", b"[", b"]", b"{", b"}", b"<", b">", b'"', b"'", b"\\", b"/", b":", b"|", b"#"),
    *(b"0", b"-1", b"1", b"1e309", b"nan", b"inf", b"99999999999999999999", b"1-2", b"2-1", b"1.1", b"0x10", b"_"),
    *(b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"&#0;", b"&#xD800;", b"<![CDATA[", b"]]>", b"<!--", b"<?xml?>"),
    *(b"^^", b"@en", b"_:a", b"<http://a>", b"@prefix", b"~e.1", b"::id", b"# ::id", b"-of", b":ARG0", b"%", b"\\u"),
    *(b"[#200]", b"[CH2000000]", b"[C+300]", b"\xff\xfe", b"\x1f\x8b\x08", b"\x89PNG\r\n\x1a\n", b"PAR1"),
    *(b"-LRB-", b"\\u0000", b"\\uD800", b"A" * 300, b"[" * 200, b"(" * 2000, b"(a " * 1500),
)
"""What formats mean something by."""


def mutated(seeds: Sequence[bytes], seed: int, number: int) -> bytes:
    """The damaged file of a number: one to four changes to one of the seed files."""
    chance = random.Random(f"{seed}:{number}")
    content = chance.choice(seeds)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        change = chance.choice(CHANGES)
        content = spliced(content, chance.choice(seeds), chance) if change is spliced else change(content, chance)
    return grown(content, chance) if chance.random() < GROWN else content


def grown(content: bytes, chance: random.Random) -> bytes:
    """A short piece, so often that work which grows faster than the file shows."""
    at = chance.randrange(len(content) + 1)
    piece = content[at : at + chance.choice((1, 1, 2, 4, 8, 30))] or b"1"
    return content[:at] + piece * (int(2 ** chance.uniform(8, 16)) // len(piece)) + content[at:]


def flipped(content: bytes, chance: random.Random) -> bytes:
    """One bit."""
    if not content:
        return content
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def replaced(content: bytes, chance: random.Random) -> bytes:
    """One byte by any."""
    at = chance.randrange(len(content) + 1)
    return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]


def removed(content: bytes, chance: random.Random) -> bytes:
    """Up to 20 bytes."""
    at = chance.randrange(len(content) + 1)
    return content[:at] + content[at + chance.randint(1, 20) :]


def truncated(content: bytes, chance: random.Random) -> bytes:
    """The file ends here."""
    return content[: chance.randrange(len(content) + 1)]


def inserted(content: bytes, chance: random.Random) -> bytes:
    """Something that means something."""
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice(TOKENS) + content[at:]


def exchanged(content: bytes, chance: random.Random) -> bytes:
    """A word, by something that means something or by another word."""
    words = content.split()
    if not words:
        return content
    old = chance.choice(words)
    at = content.find(old, chance.randrange(len(content)))
    at = content.find(old) if at < 0 else at
    return content[:at] + chance.choice((*TOKENS, chance.choice(words))) + content[at + len(old) :]


def repeated(content: bytes, chance: random.Random) -> bytes:
    """A piece, again."""
    first, last = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:last] + content[first:last] + content[last:]


def shuffled(content: bytes, chance: random.Random) -> bytes:
    """Two lines change places, or one is gone or there twice."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    kind = chance.randrange(3)
    if kind == 0:
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == 1:
        del lines[one]
    else:
        lines.insert(other, lines[one])
    return b"".join(lines)


def columns(content: bytes, chance: random.Random) -> bytes:
    """A line gets or loses a tab or a comma."""
    places = [at for at, byte in enumerate(content) if byte in b"\t,"]
    if not places or chance.random() < 0.5:
        at = chance.randrange(len(content) + 1)
        return content[:at] + chance.choice((b"\t", b",")) + content[at:]
    at = chance.choice(places)
    return content[:at] + content[at + 1 :]


def recoded(content: bytes, chance: random.Random) -> bytes:
    """Another encoding."""
    text = content.decode("utf-8", "replace")
    return text.encode(chance.choice(("utf-16", "latin-1", "utf-8-sig", "utf-32")), "replace")


def spliced(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """The beginning of one file and the end of another."""
    return content[: chance.randrange(len(content) + 1)] + other[chance.randrange(len(other) + 1) :]


CHANGES: tuple[Callable[..., bytes], ...] = (
    *(flipped, replaced, removed, truncated, inserted, inserted, exchanged, exchanged, repeated),
    *(shuffled, columns, recoded, spliced),
)
