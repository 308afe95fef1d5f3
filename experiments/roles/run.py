"""Who did what: what an encoder must know of a graph to write its sentence, on the sample of roles.

    python experiments/roles/run.py            # what is missing in results.jsonl; about 20 s of CPU for each
    python experiments/roles/run.py --table    # the table of what there is

Lesson 7 of the course has the table. A row differs from the others in the encoder's positions or messages only.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import mean, stdev

import torch

import structpe
from structpe.datasets import sample
from structpe.nn import SearchConfig

RESULTS = Path(__file__).parent / "results.jsonl"
STEPS, SEEDS = 600, range(3)
ROWS = {
    "a bag of concepts": ([], None),
    "distances with directions": ("graformer", None),
    "labels on the paths": ("zhu-sum", None),
    "messages along edges": ([], "gine"),
    "their order in the file": ("sinusoidal", None),
}


def right(row: str, seed: int, steps: int = STEPS, out: str = "runs/roles") -> dict[str, object]:
    """Train one model, and count the test sentences that it writes as they are."""
    position, messages = ROWS[row]
    began = time.process_time()
    structpe.train(
        {
            "data": {"train": str(sample("roles_sample/train.txt")), "dev": str(sample("roles_sample/dev.txt"))},
            "prepare": {"graph": "plain", "vocabulary": 800},
            "model": {
                "width": 48,
                "heads": 4,
                "encoder_layers": 1,
                "decoder_layers": 1,
                "feedforward": 96,
                "dropout": 0.0,
                "message_passing": messages,
            },
            "position": position,
            "decoder_position": "sinusoidal",
            "training": {
                "steps": steps,
                "batch_size": 48,
                "seed": seed,
                "optimiser": {"learning_rate": 0.005, "warmup": 20, "schedule": "cosine"},
                "validation": {"every": steps},
            },
            "out": f"{out}/{row.replace(' ', '-')}-{seed}",
        }
    )
    items = list(structpe.read(sample("roles_sample/test.txt")))
    model = structpe.load(f"{out}/{row.replace(' ', '-')}-{seed}")
    texts = [text.text for text in model.generate(items, SearchConfig(beam=1, longest=20))]
    exact = sum(text == item.texts[0] for text, item in zip(texts, items, strict=True))
    both = zip(texts[::2], texts[1::2], items[::2], items[1::2], strict=True)
    return {
        "row": row,
        "seed": seed,
        "steps": steps,
        "exact": exact,
        "pairs": sum(a == one.texts[0] and b == other.texts[0] for a, b, one, other in both),
        "of": len(items),
        "cpu": round(time.process_time() - began, 1),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "torch": version("torch"),
    }


def table(found: list[dict[str, object]]) -> str:
    """A row for each kind of encoder: sentences and pairs that are right, seed by seed."""
    lines = [
        "| what the encoder knows | right of 60, seed by seed | mean | ± | pairs, of 30 |",
        "|---|---|--:|--:|--:|",
    ]
    for row in ROWS:
        mine = sorted((each for each in found if each["row"] == row), key=lambda each: int(str(each["seed"])))
        if len(mine) > 1:
            exact, pairs = ([int(str(each[key])) for each in mine] for key in ("exact", "pairs"))
            lines.append(
                f"| {row} | {', '.join(map(str, exact))} | {mean(exact):.1f} | {stdev(exact):.1f} | {mean(pairs):.1f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Train what is missing, one after the other."""
    torch.set_num_threads(1)
    found = [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()] if RESULTS.exists() else []
    if "--table" not in sys.argv:
        done = {(each["row"], each["seed"]) for each in found}
        for row, seed in [(row, seed) for seed in SEEDS for row in ROWS if (row, seed) not in done]:
            found.append(right(row, seed))
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found[-1]) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
