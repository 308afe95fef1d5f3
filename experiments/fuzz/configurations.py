"""Configurations, cards and what the command line describes, with values and structure changed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from mutate import mutated

from structpe.cli._inputs import parse_encoding, parse_position
from structpe.datasets.catalogue import parsed
from structpe.encodings.base import as_encoding
from structpe.positions import Dims, build
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.prediction.study import load_study
from structpe.tasks.runs import load_config

__all__ = ["make", "take"]

ROOT = Path(__file__).parents[2]
NUMBERS = (
    0,
    1,
    -1,
    2**31,
    2**32,
    2**53,
    2**63 - 1,
    2**63,
    -(2**63),
    10**12,
    10**30,
    0.5,
    1e308,
    "1e999",
    ".nan",
    ".inf",
)
WORDS = (
    *(
        "2020-99-99",
        "!!int x",
        "!!float x",
        "!!bool x",
        "!!timestamp x",
        "!!binary a",
        "!!set {a}",
        "!!python/name:os.system",
    ),
    *(
        "&a [*a]",
        "*a",
        "&a",
        "<<: *a",
        "<<: [*a, 3]",
        "? a",
        "[" * 200,
        "{a: " * 150,
        "- " * 300,
        "null",
        "~",
        "yes",
        "1: 2",
    ),
    *(
        '"a\\0b"',
        '"\\ud800"',
        '"\\x1b[2J"',
        "\x85",
        "\u2028",
        "!x y",
        "%YAML 3.0",
        "---",
        "...",
        "|",
        ">-",
        "'",
        '"',
        "[]",
        "{}",
    ),
    *(
        "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]",
        "9" * 5000,
        "1:" * 99 + "1",
        "0x" + "f" * 40,
    ),
)
PREDICTION = """\
data: {name: zinc, folder: a}
model:
  width: 32
  layers: 2
position: [rwse]
sampling:
  fanouts: [3, 3]
training:
  steps: 10
  seed: 1
"""
POSITIONS = (
    "t5",
    "{name: t5, num_buckets: 16, encoding: distance}",
    "{name: t5, encoding: {name: distance, max_distance: 8}}",
    "[sinusoidal, {name: graformer, max_distance: 3}]",
    "{name: learned, max_length: 100}",
)
ENCODED = (
    "distance:max_distance=8",
    '{"name": "distance", "max_distance": 8}',
    "random-walk:steps=4",
    "laplacian:size=3",
    "label-path:longest=3",
)
CONFIGURATIONS = [
    *(("train", (ROOT / "examples" / name).read_text(encoding="utf-8")) for name in ("amr.yaml", "kg.yaml")),
    *(("study", (ROOT / "examples" / "study.yaml").read_text(encoding="utf-8")) for _ in range(2)),
    ("prediction", PREDICTION),
    *(("position", text) for text in POSITIONS),
    *(("encode", text) for text in ENCODED),
    *(
        ("card", file.read_text(encoding="utf-8"))
        for file in sorted((ROOT / "structpe/datasets/cards").glob("*.yaml"))[:60:20]
    ),
]


def make(chance: random.Random) -> bytes:
    """A configuration, a card, or words of the command line, with lines changed; its kind stands first."""
    kind, text = chance.choice(CONFIGURATIONS)
    lines = text.splitlines()
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(lines))
        key, colon, _ = lines[at].partition(": ")
        new = chance.choice((*WORDS, *map(str, NUMBERS), chance.choice(lines).strip()))
        way = chance.randrange(5)
        if way == 0 and colon:
            lines[at] = f"{key}: {new}"
        elif way == 1 and colon:
            lines[at] = f"{key}: {chance.choice((*map(str, NUMBERS), '[]', '{}', 'a', '[1, 2]'))}"
        elif way == 2:
            lines.insert(at, new)
        elif way == 3:
            lines[at] = lines[at].replace(chance.choice(lines[at].split() or ["a"]), new)
        else:
            lines[at : at + 1] = (
                mutated([lines[at].encode()], chance.randrange(1 << 30), 0).decode("utf-8", "replace").splitlines()
            )
            lines = lines or [""]
    return f"{kind}\n".encode() + "\n".join(lines).encode("utf-8", "replace")


def take(content: bytes, folder: Path) -> None:
    """Check it as the command of its kind does before anything runs."""
    kind, _, text = content.partition(b"\n")
    file = folder / "a.yaml"
    file.write_bytes(text)
    if kind in (b"train", b"prediction"):
        config = load_config(file)
        if isinstance(config, GraphToTextConfig) and _small(config.position):
            build(config.position, Dims(8, 2, 1))
    elif kind == b"study":
        study = load_study(file)
        for key in study.keys()[:2]:
            study.run(key)
    elif kind == b"card":
        parsed(text.decode("utf-8", "replace"), str(file))
    else:
        for line in text.decode("utf-8", "replace").split("\n"):
            if kind == b"encode":
                as_encoding(parse_encoding(line))
            else:
                described = parse_position(line)
                build(described, Dims(8, 2, 1)) if _small(described) else None


def _small(described: Any) -> bool:
    """Whether building it takes no time: sizes that are allowed may still be many megabytes."""
    return len(json.dumps(described, default=str)) < 500 and not any(
        word in str(described) for word in ("00000", "99999", "777216")
    )
