"""What UD's validator asks of a CoNLL-U file, in a small part: on the characters of the file, without structpe."""

from __future__ import annotations

import re
from collections.abc import Sequence

UPOS = set(re.findall(r"\w+", "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"))


def complaints(text: str, untagged: bool = False) -> list[str]:
    """What is wrong with a file.

    Args:
        text: of the file.
        untagged: whether all UPOS are to be ``_``, as a treebank without these tags has them.
    """
    found = [] if text.endswith("\n\n") and "\n\n\n" not in text else ["not one empty line after each sentence"]
    ids = re.findall(r"^# sent_id = (.*)$", text, re.MULTILINE)
    blocks = text.strip("\n").split("\n\n")
    if len(set(ids)) != len(blocks):
        found.append("sentence ids are not one for each")
    for block in blocks:
        found += _of_sentence(block.split("\n"), {"_"} if untagged else UPOS)
    return found


def _of_sentence(lines: Sequence[str], tags: set[str]) -> list[str]:
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    said = next(line.removeprefix("# text = ") for line in lines if line.startswith("# text = "))
    if wrong := [row for row in rows if len(row) != 10 or not all(row)]:
        return [f"not ten fields: {wrong[0]}"]
    found = [f"blank in {row}" for row in rows if any(" " in cell for cell in (*row[:1], *row[3:9]))]
    words = [row for row in rows if row[0].isdigit()]
    if [row[0] for row in words] != [str(place) for place in range(1, len(words) + 1)]:
        found.append(f"ids {[row[0] for row in words]}")
    found += [f"UPOS {row[3]}" for row in words if row[3] not in tags]
    roots = [row for row in words if row[6] == "0"]
    if len(roots) != 1 or any((row[6] == "0") != (row[7] == "root") for row in words):
        found.append(f"roots {roots}")
    found += [f"deprel {row[7]}" for row in words if not re.fullmatch(r"[a-z]+(:[a-z]+(_[a-z]+)*)?", row[7])]
    for row in words:
        above, steps = int(row[6]), 0
        while above and steps <= len(words):
            above, steps = int(words[above - 1][6]), steps + 1
        found += [f"a cycle at {row[0]}"] if above else []
    if said != _surface(rows):
        found.append(f"text is {said!r}, its words are {_surface(rows)!r}")
    return found


def _surface(rows: Sequence[Sequence[str]]) -> str:
    """The text of the words, of multiword tokens where there are."""
    text, inside = "", 0
    for row in rows:
        first, _, last = row[0].partition("-")
        if "." in first or int(first) <= inside:
            continue
        inside = int(last or inside)
        text += row[1] + ("" if "SpaceAfter=No" in row[9].split("|") else " ")
    return text.rstrip(" ")
