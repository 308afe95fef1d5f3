"""What relative positions cost a BERT: Table 1 of Chen et al. (2021), on the machine at hand.

    python experiments/speed/diet.py                   # BERT-small, 8 texts of 128 units, one thread; a minute
    python experiments/speed/diet.py --units 512 --batch 2
    python experiments/speed/diet.py --layers 12 --width 768 --heads 12 --rounds 3        # BERT-base

Training is a step of masked language modelling with AdamW: embedding, encoder, logits of 15 % of the units, both passes
and the update. Inference is the encoder alone. The models take turns; times are medians of CPU time, printed as
percentages more than `absolute`, the learned positions of BERT.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping

import torch
from timing import medians, shown
from torch import Tensor, nn
from torch.nn import functional

from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.positions import MODELS, Dims, Positions
from structpe.positions.batch import encode
from structpe.structure import path

MODELS_OF_TABLE = {
    "absolute": "learned",
    "Shaw": "shaw",
    "TUPE": "tupe-a",
    "DIET-ABS": "diet-abs",
    "DIET-REL": "diet-rel",
    "T5, shared by the layers": "t5",
}
VOCABULARY = 30_522
MASKED = 0.15


class Bert(nn.Module):
    """An encoder with an embedding; its output layer shares the weights.

    Args:
        dims: sizes.
        position: name of the position model.
    """

    def __init__(self, dims: Dims, position: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, dims.width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.encoder = Stack(StackConfig.transformer(dims, 4 * dims.width), MODELS[position](dims))

    def hidden(self, units: Tensor, positions: Positions) -> Tensor:
        """(b, n, d)."""
        return self.encoder.padded(self.embedding(units), positions)

    def loss(self, units: Tensor, positions: Positions, masked: Tensor) -> Tensor:
        """Cross-entropy of the masked units."""
        hidden = self.hidden(units, positions)
        return functional.cross_entropy(hidden[masked] @ self.embedding.weight.T, units[masked])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"layers": 4, "width": 512, "heads": 8, "units": 128, "batch": 8, "rounds": 7}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"by default {default}")
    parser.add_argument("--write", action="store_true", help="keep the table, which is one of docs/speed.md")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dims = Dims(given.width, given.heads, given.layers)
    units = torch.randint(VOCABULARY, (given.batch, given.units))
    masked = torch.rand(units.shape) < MASKED
    steps: dict[str, dict[str, Callable[[], None]]] = {"training": {}, "inference": {}}
    for name, position in MODELS_OF_TABLE.items():
        steps["training"][name], steps["inference"][name] = _steps(Bert(dims, position), units, masked)
    shown("diet", table(steps, given.rounds), given.write)


PAPER = {"training": ("+24%", "+4%", "+0%", "+0%", "-"), "inference": ("+65%", "+27%", "+1%", "+0%", "-")}
"""What Table 1 has, of a BERT-small on a TPU."""


def table(steps: Mapping[str, Mapping[str, Callable[[], None]]], rounds: int) -> Iterator[str]:
    """Its lines."""
    names = [name for name in MODELS_OF_TABLE if name != "absolute"]
    yield f"| | absolute, ms | {' | '.join(names)} |\n|---|{'--:|' * (len(names) + 1)}"
    for mode, each in steps.items():
        took = medians(each, rounds)
        floor = took["absolute"]
        yield f"| {mode}, paper | - | {' | '.join(PAPER[mode])} |"
        more = " | ".join(f"{took[name] / floor - 1:+.0%}" for name in names)
        yield f"| {mode}, structpe | {floor * 1e3:.0f} | {more} |"


def _steps(net: Bert, units: Tensor, masked: Tensor) -> tuple[Callable[[], None], Callable[[], None]]:
    positions = encode([path(("",) * units.shape[1])] * len(units), net.encoder.position.encodings)
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)

    def train() -> None:
        net.train()
        net.loss(units, positions, masked).backward()
        optimizer.step()
        optimizer.zero_grad()

    def infer() -> None:
        net.eval()
        with torch.no_grad():
            net.hidden(units, positions)

    return train, infer


if __name__ == "__main__":
    main()
