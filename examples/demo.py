"""The main job on the project's own samples: train graph to text on AMR and triples, write held-out texts, score them.

    make demo            # or: python examples/demo.py

Run it in the folder of the repository. The trained models stay under ``runs/demo``.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

import structpe
from structpe import StructPEError
from structpe.tasks import Generated, Result, Scores, load_config, train

JOBS = {"AMR": Path("examples/amr.yaml"), "triples": Path("examples/kg.yaml")}
SHOWN = 12


def main() -> int:
    """Both jobs, one after the other."""
    console = Console()
    start = time.monotonic()
    try:
        for title, path in JOBS.items():
            console.rule(f"[bold]{title} to text[/]: training")
            scores, texts = job(path)
            show(console, title, scores, texts)
    except StructPEError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    console.print(f"Done in {(time.monotonic() - start) / 60:.1f} minutes. The models are in runs/demo; try")
    console.print("  .venv/bin/structpe generate runs/demo/amr datasets/amr_sample/test.txt", highlight=False)
    console.print("  .venv/bin/structpe positions", highlight=False)
    return 0


def job(path: Path) -> tuple[Scores, list[Generated]]:
    """Train as the configuration says, go on with a training that was interrupted, and score the held-out graphs."""
    config = load_config(path)
    config = replace(config, out=str(Path("runs/demo") / config.name))
    train(config, fresh=Result.load(Path(config.out)) is not None)
    return structpe.load(config.out).evaluate(str(config.data.test))


def show(console: Console, title: str, scores: Scores, texts: list[Generated]) -> None:
    """The metrics, and some texts beside their references."""
    table = Table(title=f"{title}: what the model writes for graphs that it has not seen", title_justify="left")
    table.add_column("written", ratio=1)
    table.add_column("reference", ratio=1)
    for text in texts[:SHOWN]:
        style = "green" if text.text in text.references else ""
        table.add_row(text.text, text.references[0], style=style, end_section=True)
    console.print(table)
    exact = sum(text.text in text.references for text in texts)
    console.print(f"{exact} of {len(texts)} held-out texts are exactly a reference.")
    console.print(str(scores), highlight=False)


if __name__ == "__main__":
    sys.exit(main())
