"""Character offsets of the words of CoNLL-U in the text, including words of multiword ranges (``3-4  don't``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from structpe.structure import Ids

__all__ = ["Range", "spans_with_ranges"]

Range = tuple[int, int, str]
"""Numbers of the first and the last word, from 1, and the form."""


def spans_with_ranges(words: Sequence[str], ranges: Sequence[Range], text: str) -> Ids:
    """(n, 2) start and end of each word in the text, found from left to right; -1, -1 for a missing word.

    The text contains a range, but maybe not its words. If the words concatenate to the range, each has its part. If
    there are two, and the first is a prefix of the range or the last a suffix, the other has the rest. Otherwise each
    has the whole range.
    """
    found: list[tuple[int, int]] = []
    at, wide = 0, {first: (last, form) for first, last, form in ranges}
    while len(found) < len(words):
        place = len(found)
        last, form = wide.get(place + 1, (place + 1, words[place]))
        inside = words[place : max(last, place + 1)]
        start = text.find(form, at) if form else -1
        if start < 0:
            found += [(-1, -1)] * len(inside)
            continue
        at = start + len(form)
        found += [(start + a, start + b) for a, b in _parts(form, inside)]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _parts(whole: str, words: Sequence[str]) -> list[tuple[int, int]]:
    if "".join(words) == whole:
        return list(pairwise(accumulate(map(len, words), initial=0)))
    if len(words) == 2 and 0 < len(words[0]) < len(whole) and whole.startswith(words[0]):
        return [(0, len(words[0])), (len(words[0]), len(whole))]
    if len(words) == 2 and 0 < len(words[1]) < len(whole) and whole.endswith(words[1]) and words[0] != whole:
        return [(0, len(whole) - len(words[1])), (len(whole) - len(words[1]), len(whole))]
    return [(0, len(whole))] * len(words)
