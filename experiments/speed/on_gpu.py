"""The tables of what was measured on a GPU, from ``results/h100`` and ``results/h200``.

Made there by ``gpu.py`` (``kernels.jsonl``, to each line of which the commit was added), ``gps.py`` (``step.md``),
``buckets.py`` (``buckets.md``), ``on_device.py`` (``encodings.md``) and ``widths.py`` (``widths.md``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["TABLES", "made"]

RESULTS = Path(__file__).parent / "results"
FOLDERS = {"widths": "h200"}
"""Of tables that are not of an H100."""
NAMES = {
    "none": "none: FlashAttention",
    "embedding": "embedding, permute, fused",
}
"""What ways are called that are not kernels of ours."""


TABLES = ("agreement", "times", "widths", "step", "buckets", "encodings")


def made(table: str) -> str:
    """A table, in Markdown."""
    if table not in ("agreement", "times"):
        return rows(table)
    lines = [json.loads(line) for line in (RESULTS / "h100" / "kernels.jsonl").read_text(encoding="utf-8").splitlines()]
    return agreement(lines) if table == "agreement" else times(lines)


def agreement(lines: list[dict[str, Any]]) -> str:
    """How far kernels are from ``dense``."""
    equal = [line for line in lines if line["part"] == "equal"]
    columns = ("output", "gradients")
    text = ["| kernel | comparisons | largest difference of outputs | of gradients |", "|---|--:|--:|--:|"]
    for kernel in sorted({line["kernel"] for line in equal}):
        mine = [line for line in equal if line["kernel"] == kernel]
        most = " | ".join(f"{max(line[column] for line in mine):.1e}" for column in columns)
        text.append(f"| `{kernel}` | {len(mine)} | {most} |")
    return "\n".join(text)


def times(lines: list[dict[str, Any]]) -> str:
    """Forward, and forward and backward, beside attention without positions."""
    text = ["| terms | units | way | forward, ms | training, ms | forward / none | training / none | commit |"]
    text.append("|---|---|---|--:|--:|--:|--:|---|")
    for line in (line for line in lines if line["part"] == "time"):
        way = NAMES.get(line["way"], f"`{line['way']}`")
        numbers = (
            f"{line['forward_ms']:.2f} | {line['training_ms']:.2f} | {line['forward_ratio']:.3g} | "
            f"{line['training_ratio']:.3g}"
        )
        of = f"{line['case']} | {line['structures']} of {line['units']} | {way}"
        text.append(f"| {of} | {numbers} | {line['commit'][:7]} |")
    return "\n".join(text)


def rows(name: str) -> str:
    """The table of a file."""
    text = (RESULTS / FOLDERS.get(name, "h100") / f"{name}.md").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in text if line.startswith("|"))
