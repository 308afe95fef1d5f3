"""How many parameters BERT-base has with each position model: Table 6 of Chen et al. 2021, and the whole registry.

    python experiments/parameters/run.py

The Transformer is built for real, without memory for its numbers; nothing here is a formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.positions import MODELS, Dims, build

BERT_BASE = Dims(width=768, heads=12, layers=12)
FEEDFORWARD = 3072
ENGLISH, MULTILINGUAL = 30_522, 120_000
"""Units of the vocabulary. The study says 30,000 in English; its counts are those of BERT's own 30,522."""


@dataclass(frozen=True)
class Row:
    """A row of Table 6 as printed, and what it is here.

    Attributes:
        model: as the study names it.
        position: plain data that :func:`structpe.positions.build` understands; segments are part of it.
        english: parameters and their growth, as printed.
        multilingual: likewise.
    """

    model: str
    position: list[Any]
    english: tuple[str, str]
    multilingual: tuple[str, str]


def diet(name: str, **options: Any) -> list[Any]:
    """A model of the study with its attention among segments, which has the sharing of the positions' model."""
    sharing = {key: value for key, value in options.items() if key == "sharing"}
    return [{"name": name, **options}, {"name": "segment-bias", **sharing}]


TABLE_6 = [
    Row("Devlin et al. (2018)", ["learned", "segment-input"], ("110.1M", "-"), ("178.9M", "-")),
    # The study does not say where it cuts Shaw's offsets off; a window of 2 * 1024 - 1 gives what it prints.
    Row(
        "Shaw et al. (2018)",
        [{"name": "shaw", "max_distance": 1023}, "segment-input"],
        ("112.9M", "+2.5%"),
        ("181.7M", "+1.7%"),
    ),
    Row("DIET-REL", diet("diet-rel"), ("109.9M", "+0.0%"), ("178.7M", "+0.0%")),
    Row("DIET-REL (share)", diet("diet-rel", sharing="layer-wise"), ("109.7M", "+0.0%"), ("178.5M", "+0.0%")),
    Row("DIET-ABS (d_p=128)", diet("diet-abs", rank=128), ("128.6M", "+16.8%"), ("197.4M", "+10.0%")),
    Row(
        "DIET-ABS (d_p=128, share)",
        diet("diet-abs", rank=128, sharing="layer-wise"),
        ("111.3M", "+1.1%"),
        ("180.1M", "+0.6%"),
    ),
]


class BertBase(nn.Module):
    """BERT-base as it is trained: embeddings, encoder, pooler, and the part that names masked units.

    Args:
        vocabulary: number of units; the last part has the weights of the embeddings.
        position: plain data that describes its position model.
    """

    def __init__(self, vocabulary: int, position: Any) -> None:
        super().__init__()
        width = BERT_BASE.width
        self.units = nn.Embedding(vocabulary, width)
        # The norm behind the embeddings is the encoder's last one here, where each part is normalised before.
        self.encoder = Stack(StackConfig.transformer(BERT_BASE, FEEDFORWARD), build(position, BERT_BASE))
        self.pooler = nn.Linear(width, width)
        self.masked = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width))
        self.bias = nn.Parameter(torch.zeros(vocabulary))


def count(vocabulary: int, position: Any) -> int:
    """Parameters of BERT-base with a position model."""
    with torch.device("meta"):
        return sum(p.numel() for p in BertBase(vocabulary, position).parameters())


def in_millions(parameters: int) -> str:
    """As the study prints them: 110.1M."""
    return f"{parameters / 1e6:.1f}M"


def growth(parameters: int, of: int) -> str:
    """As the study prints it: +2.5%."""
    return f"{100 * (parameters - of) / of:+.1f}%"


def table_6() -> list[tuple[str, list[str]]]:
    """Each model with what its cells of Table 6 come out as: English, +, multilingual, +."""
    rows = []
    bases = [count(vocabulary, TABLE_6[0].position) for vocabulary in (ENGLISH, MULTILINGUAL)]
    for row in TABLE_6:
        cells = []
        for vocabulary, base in zip((ENGLISH, MULTILINGUAL), bases, strict=True):
            parameters = count(vocabulary, row.position)
            cells += [in_millions(parameters), "-" if row is TABLE_6[0] else growth(parameters, base)]
        rows.append((row.model, cells))
    return rows


def as_markdown() -> str:
    """Beside what is printed, where that is another number."""
    lines = ["| model | English | + | multilingual | + |", "|---|---|---|---|---|"]
    for row, (model, cells) in zip(TABLE_6, table_6(), strict=True):
        printed = [*row.english, *row.multilingual]
        shown = [c if c == p else f"{c} (printed {p})" for c, p in zip(cells, printed, strict=True)]
        lines.append(f"| {model} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def print_registry() -> None:
    """Every model of the registry, with its defaults, at the sizes of BERT-base."""
    print("| model | parameters | formula |\n|---|---|---|")
    for name in sorted(MODELS):
        with torch.device("meta"):
            model = build(name, BERT_BASE)
        print(f"| {name} | {sum(p.numel() for p in model.parameters()):,} | `{model.spec.cells.params}` |")


def main() -> None:
    """Both tables, as Markdown."""
    print(as_markdown())
    print()
    print_registry()


if __name__ == "__main__":
    main()
