"""Whoever changes the numbers of an encoding raises its version: stores of the old ones are refused then.

``python -m tests.encodings.test_versions`` writes ``versions.json`` after a version was raised, and before a release:
an encoding that is not in it has no stores yet. It holds numbers of one small tree, so that it does not see changes in
large graphs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from structpe.encodings import ENCODINGS, Encoded
from structpe.errors import EncodingError
from structpe.structure import Structure
from tests.encodings.asking import asked
from tests.together import together

FILE = Path(__file__).with_name("versions.json")
KNOWN: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
TREE = Structure(  # without symmetry, so that no eigenvalue is repeated
    nodes=tuple("abcdefg"),
    edges=np.array([[0, 1], [0, 2], [1, 3], [3, 4], [4, 5], [1, 6]]),
    relations=("x", "y", "x", "z", "y", "x"),
    order=np.array([2, 0, 5, 1, 6, 3, 4]),
    root=0,
    units=tuple("abbcdefg"),
    owner=np.array([0, 1, 1, 2, 3, 4, 5, 6]),
)


def numbers(name: str) -> list[Any] | None:
    """What an encoding says of the tree; magnitudes of real numbers, as signs of vectors are a convention."""
    encoding = asked(name).fit([TREE])
    try:
        encoded = encoding.many([TREE])[0]
    except EncodingError:
        return None
    values = meaning_of(encoded)
    whole: list[Any] = (np.abs(values).astype(np.float64).round(6) if encoding.real else values).tolist()
    return whole if encoded.listed is None else [encoded.listed.tolist(), whole]


def meaning_of(encoded: Encoded) -> Any:
    """What it says of each unit, each pair, or each listed pair."""
    if encoded.index is None:
        return encoded.values
    return encoded.pairs() if encoded.listed is None else encoded.values[encoded.index]


@together("name", KNOWN)
def test_numbers_change_with_the_version_only(name: str) -> None:
    known = KNOWN[name]
    assert ENCODINGS[name].version == known["version"], (
        "as the version was raised: python -m tests.encodings.test_versions"
    )
    found, same = numbers(name), known["numbers"]
    told = f"{name!r} gives other numbers than version {known['version']} did; raise its `version`"
    assert (found is None) == (same is None), told
    if found is not None and same is not None:
        parts = zip(found, same, strict=True) if ENCODINGS[name].sparse else [(found, same)]
        assert all(np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in parts), told


def write() -> None:
    """Write down what encodings say now."""
    lines = [
        f"{json.dumps(name)}: {json.dumps({'version': ENCODINGS[name].version, 'numbers': numbers(name)})}"
        for name in ENCODINGS
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
