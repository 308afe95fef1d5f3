"""Units written a second, here and by Hugging Face's ``generate``, by models of one size with random weights.

    python experiments/speed/decoding.py                        # one thread, some three minutes
    python experiments/speed/decoding.py --rounds 9 --beams 1 4 10
    python experiments/speed/decoding.py --units 512 --rows 1   # longer texts, one at a time

Pairs: a language model with T5's relative bias and GPT-2; an encoder-decoder with T5's relative bias and T5. Both have
the same width, heads, layers, feed-forward width and vocabulary, search with as many beams, and write the same number
of units, as no unit ends a text. All of a row take turns in one process on one thread, and the time is that of the
processor, so that mainly the ratio is meant to be read. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import transformers
from timing import medians, shown
from torch import Tensor, nn

from structpe.data.batch import Batch, EdgeTypes
from structpe.nn.language_model import LanguageModel
from structpe.nn.layer import StackConfig
from structpe.nn.search import SearchConfig, search
from structpe.nn.seq2seq import EncoderDecoder, TransformerConfig
from structpe.positions import Dims, build
from structpe.structure import path

SOURCE = 32
FIRST = 0
Run = Callable[[int], list[list[int]]]


@dataclass(frozen=True)
class Sizes:
    """Of a model, and of what it writes.

    Args:
        width, heads, layers, feedforward, vocabulary: of the model; an encoder-decoder has as many layers twice.
        rows: texts that are written at once.
        units: that are written of each.
    """

    width: int = 256
    heads: int = 4
    layers: int = 4
    feedforward: int = 1024
    vocabulary: int = 8000
    rows: int = 8
    units: int = 128

    @property
    def dims(self) -> Dims:
        """Sizes for a position model."""
        return Dims(self.width, self.heads, self.layers)


@dataclass(frozen=True)
class Writer:
    """A model and how it writes with a number of beams."""

    name: str
    model: nn.Module
    run: Run

    @property
    def parameters(self) -> float:
        """Millions of parameters."""
        return sum(each.numel() for each in self.model.parameters()) / 1e6


def language_model(sizes: Sizes) -> Writer:
    """Ours."""
    config = StackConfig.transformer(sizes.dims, sizes.feedforward)
    model = LanguageModel(config, sizes.vocabulary, build("t5-causal", sizes.dims)).eval()

    def run(beams: int) -> list[list[int]]:
        config = SearchConfig(beam=beams, longest=sizes.units)
        with torch.no_grad():
            return search(model.step, model.start(sizes.rows), FIRST, sizes.vocabulary, config)

    return Writer("structpe", model, run)


def gpt2(sizes: Sizes) -> Writer:
    """Hugging Face's language model of these sizes."""
    config = transformers.GPT2Config(
        vocab_size=sizes.vocabulary,
        n_positions=sizes.units + 1,
        n_embd=sizes.width,
        n_layer=sizes.layers,
        n_head=sizes.heads,
        n_inner=sizes.feedforward,
        bos_token_id=FIRST,
        eos_token_id=None,
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    return Writer(
        f"GPT-2, {model.config._attn_implementation}",
        model,
        _generated(model, torch.full((sizes.rows, 1), FIRST), sizes.units),
    )


def encoder_decoder(sizes: Sizes) -> Writer:
    """Ours."""
    layers = {"encoder_layers": sizes.layers, "decoder_layers": sizes.layers}
    config = TransformerConfig(
        sizes.width, sizes.heads, **layers, feedforward=sizes.feedforward, dropout=0.0, message_passing=None
    )
    encoder, decoder = build("t5", sizes.dims), build("t5-causal", sizes.dims)
    model = EncoderDecoder(config, sizes.vocabulary, encoder, decoder).eval()
    texts = [path([""] * SOURCE)] * sizes.rows
    batch = Batch.of(texts, encoder.encodings, EdgeTypes()).replaced(x=_source(sizes).flatten())

    def run(beams: int) -> list[list[int]]:
        config = SearchConfig(beam=beams, longest=sizes.units)
        with torch.no_grad():
            return search(model.step, model.start(batch), FIRST, sizes.vocabulary, config)

    return Writer("structpe", model, run)


def t5(sizes: Sizes) -> Writer:
    """Hugging Face's encoder-decoder of these sizes."""
    config = transformers.T5Config(
        vocab_size=sizes.vocabulary,
        d_model=sizes.width,
        d_kv=sizes.width // sizes.heads,
        d_ff=sizes.feedforward,
        num_layers=sizes.layers,
        num_decoder_layers=sizes.layers,
        num_heads=sizes.heads,
        decoder_start_token_id=FIRST,
        eos_token_id=None,
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    return Writer(f"T5, {model.config._attn_implementation}", model, _generated(model, _source(sizes), sizes.units))


def _source(sizes: Sizes) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(2, sizes.vocabulary, (sizes.rows, SOURCE), generator=generator)


def _generated(model: Any, given: Tensor, units: int) -> Run:
    def run(beams: int) -> list[list[int]]:
        present = torch.ones_like(given)
        options = {"num_beams": beams, "do_sample": False, "max_new_tokens": units, "pad_token_id": FIRST}
        out = model.generate(given, attention_mask=present, **options)
        written: list[list[int]] = out[:, -units:].tolist()
        return written

    return run


PAIRS = {"language model": (language_model, gpt2), "encoder-decoder": (encoder_decoder, t5)}


def rows(sizes: Sizes, beams: list[int], rounds: int) -> Iterator[list[str]]:
    """A line of the table for each pair and number of beams.

    Raises:
        ValueError: one did not write as many units as it was to.
    """
    for name, makers in PAIRS.items():
        torch.manual_seed(0)
        ours, theirs = (make(sizes) for make in makers)
        for beam in beams:
            for writer in (ours, theirs):
                lengths = {len(text) for text in writer.run(beam)}  # this also warms it up
                if lengths != {sizes.units}:
                    raise ValueError(
                        f"{writer.name} wrote {sorted(lengths)} units, not {sizes.units}; nothing is timed"
                    )
            ways = {"ours": partial(ours.run, beam), "theirs": partial(theirs.run, beam)}
            took = medians(ways, rounds, warm=0)
            speeds = [sizes.rows * sizes.units / took[name] for name in ways]
            models = [f"{writer.name}, {writer.parameters:.1f}M" for writer in (ours, theirs)]
            yield [name, str(beam), *models, *(f"{speed:,.0f}" for speed in speeds), f"{speeds[0] / speeds[1]:.2f}"]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        "decoding", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=Sizes.rows, help="texts at once")
    parser.add_argument("--units", type=int, default=Sizes.units, help="that are written of each text")
    parser.add_argument("--write", action="store_true", help="keep the table, which is one of docs/speed.md")
    given = parser.parse_args()
    torch.set_num_threads(1)
    sizes = Sizes(rows=given.rows, units=given.units)
    shown("decoding", table(sizes, given.beams, given.rounds), given.write)
    return 0


COLUMNS = ["model", "beams", "structpe", "Hugging Face", "structpe, units/s", "Hugging Face, units/s", "ratio"]


def table(sizes: Sizes, beams: list[int], rounds: int) -> Iterator[str]:
    """Its lines."""
    yield f"| {' | '.join(COLUMNS)} |\n|---|--:|---|---|--:|--:|--:|"
    for cells in rows(sizes, beams, rounds):
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
