"""Indexes: JSON files that describe stores, checkpoints, corpora and half-fetched files, edited."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mutate import mutated

from structpe.data import store
from structpe.datasets.catalogue import card_of
from structpe.datasets.downloads import Download, _had
from structpe.datasets.records import recorded
from structpe.encodings.base import as_encoding
from structpe.plain import read_json
from structpe.structure import Structure
from structpe.tasks.training import checkpoint
from structpe.tasks.training.result import Result

__all__ = ["make", "take"]

JSONS = (
    *(
        "[" * 2000,
        '{"a":' * 1500,
        "9" * 5000,
        "1e999",
        "NaN",
        "-1",
        "null",
        "[]",
        "{}",
        '"\\u0000"',
        '"\\ud800"',
        "true",
    ),
    *('""', "0.5", "1" + "0" * 30, '"../../etc"', '"a\\u001b[2J"', "[[[]]]", '{"a": {"b": []}}'),
)


def _stored() -> dict[str, bytes]:
    """The files of a store of two structures."""
    structures = [Structure(("a", "b", "c"), [(0, 1), (1, 2)], name=name) for name in "xy"]
    with TemporaryDirectory() as folder:
        store.write(Path(folder) / "a", structures, [as_encoding({"name": "distance", "max_distance": 3})])
        return {file.name: file.read_bytes() for file in (Path(folder) / "a").iterdir()}


STORED = _stored()
STATE = {
    "format": "structpe checkpoint",
    "version": 1,
    "tensors_bytes": 8,
    "state": {"step": 3, "more": [1, {"a": None}]},
}
RECORD = {"card": "a", "files": {"a.txt": {"sha256": "0" * 64, "bytes": 3}, "b": {"sha256": "1" * 64, "bytes": 0}}}
NOTE = {"url": "http://a/b", "etag": '"1"', "modified": "now", "total": 3}
RESULT = {
    "steps": 3,
    "best_step": 2,
    "best": {"loss": 0.5},
    "stopped_early": False,
    "step_seconds": 0.1,
    "seconds": 1.0,
    "peak_bytes": 9,
}
CARD = {
    "name": "a",
    "kind": "trees",
    "description": "d",
    "licence": "MIT",
    "citation": "c",
    "files": [{"name": "a.txt", "sha256": "0" * 64, "bytes": 1}],
    "splits": {"train": {"file": "a.txt", "items": 2, "options": {"graph": "enhanced"}}},
    "reader": "tokens",
}
TENSORS = struct.pack("<Q", 2) + b"{}"
INDEXES = [
    (name, json.dumps(data))
    for name, data in (
        *(
            ("index.json", json.loads(STORED["index.json"])),
            ("state.json", STATE),
            (".structpe.json", RECORD),
            ("a.part.json", NOTE),
        ),
        *(("result.json", RESULT), ("card.json", CARD), ("any.json", {"a": [1, 2, {"b": None}]})),
    )
]


def make(chance: random.Random) -> bytes:
    """A JSON file of one of our formats, with a value or bytes changed; its name stands first."""
    kind, text = chance.choice(INDEXES)
    if chance.random() < 0.5:
        data = json.loads(text)
        return f"{kind}\n".encode() + _edited(data, chance).encode("utf-8", "surrogatepass")
    return f"{kind}\n".encode() + mutated([text.encode()], chance.randrange(1 << 30), 0)


def _edited(data: Any, chance: random.Random) -> str:
    """JSON with one value, anywhere in it, by another."""
    text = json.dumps(data)
    places = [at for at, letter in enumerate(text) if letter in ":,["]
    at = chance.choice(places) + 1
    end = min((found for found in (text.find(letter, at + 1) for letter in ",]}") if found > 0), default=len(text))
    return text[:at] + chance.choice(JSONS) + text[end:]


def take(content: bytes, folder: Path) -> None:
    """Read it as who owns it does."""
    kind, _, text = content.partition(b"\n")
    name = kind.decode()
    (folder / name).write_bytes(text)
    if name == "index.json":
        for other in STORED.keys() - {name}:
            (folder / other).write_bytes(STORED[other])
        for row in store.load(folder):
            del row
    elif name == "state.json":
        (folder / "tensors.safetensors").write_bytes(TENSORS)
        if (found := checkpoint.newest(folder)) is None:
            checkpoint.load(folder)
        else:
            checkpoint.load(found)
    elif name == ".structpe.json":
        recorded(folder)
    elif name == "a.part.json":
        (folder / "a.part").write_bytes(b"a")
        _had(Download("http://a/b"), folder / "a.part")
    elif name == "result.json":
        Result.load(folder)
    elif name == "card.json":
        card_of(read_json(folder / name, "bring it back"), str(folder))
    else:
        read_json(folder / name, "bring it back")
