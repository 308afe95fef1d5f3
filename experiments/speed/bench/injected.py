"""The fifth table: models of Hugging Face with a position model beside their own attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import transformers
from samples import of_units
from tables import Row, Table, number
from torch import Tensor
from turns import Way, check, medians

from structpe import inject
from structpe.adapters.transformers import TokenPositions

__all__ = ["TABLE"]

WIDTH, HEADS, LAYERS, VOCABULARY = 256, 4, 4, 1000
SIZES = ((64, 24), (8, 128), (2, 512))
"""Texts of a batch, and tokens of each: those of a tree."""
POSITIONS: Mapping[str, Any] = {
    "with bias": {"name": "t5", "encoding": "undirected-distance"},
    "with vectors": {"name": "shaw", "encoding": "undirected-distance"},
}
DEFAULT, WITHOUT = "default", "structpe, without"
_SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 4 * WIDTH,
    "vocab_size": VOCABULARY,
}


def _t5() -> Any:
    config = transformers.T5Config(
        d_model=WIDTH, d_kv=WIDTH // HEADS, d_ff=4 * WIDTH, num_layers=LAYERS, num_heads=HEADS, vocab_size=VOCABULARY
    )
    return transformers.T5EncoderModel(config)


MODELS: Mapping[str, Callable[[], Any]] = {
    "hf-t5": _t5,
    "hf-bert": lambda: transformers.BertModel(transformers.BertConfig(**_SIZES)),
    "hf-llama": lambda: transformers.LlamaModel(transformers.LlamaConfig(**_SIZES, num_key_value_heads=HEADS // 2)),
}


def _ways(name: str, texts: int, tokens: int) -> dict[str, Callable[[], Tensor]]:
    """The hidden vectors of one batch, by each attention; the model's own, in the mode that it comes with, first."""
    made: dict[str, Callable[[], Tensor]] = {}
    for way in (DEFAULT, WITHOUT, *POSITIONS):
        torch.manual_seed(0)
        model = MODELS[name]().eval()  # without dropout, so that all compute the same
        ids = torch.randint(VOCABULARY, (texts, tokens), generator=torch.Generator().manual_seed(0))
        batch: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if way == DEFAULT:
            way = f"{DEFAULT}: {model.config._attn_implementation}"
        else:
            injected = inject(model, POSITIONS.get(way, POSITIONS["with bias"]))
            structures = of_units(texts, tokens)["trees"]
            units = [np.arange(each.unit_count) for each in structures]
            positions = TokenPositions.of(structures, units, injected.position.encodings, length=tokens)
            batch["structpe"] = positions if way in POSITIONS else None
        made[way] = partial(_hidden, model, batch)
    return made


def _hidden(model: Any, batch: Mapping[str, Any]) -> Tensor:
    hidden: Tensor = model(**batch).last_hidden_state
    return hidden


def _step(run: Callable[[], Tensor]) -> None:
    run().square().mean().backward()


def _forward(run: Callable[[], Tensor]) -> None:
    with torch.no_grad():
        run()


def _measure(name: str, texts: int, tokens: int, rounds: int) -> Iterator[Sequence[str]]:
    """A line per attention: milliseconds, and how many times as long as the model's own, forward and a training step.

    Raises:
        Disagreement: one of them computes something else, where all position models start at zero.
    """
    ways = _ways(name, texts, tokens)
    with torch.no_grad():
        check(
            f"{name}",
            {way: Way(lambda run=run: [run().numpy()], lambda found: list(found)) for way, run in ways.items()},
            1e-4,
        )
    forward = medians({way: partial(_forward, run) for way, run in ways.items()}, rounds)
    step = medians({way: partial(_step, run) for way, run in ways.items()}, rounds)
    default = next(iter(ways))
    for way in ways:
        first, second = (number(took[way] / took[default]) for took in (forward, step))
        of = f"{texts} of {tokens}"
        yield [name, of, way, number(forward[way] * 1e3), first, number(step[way] * 1e3), second]


TABLE = Table(
    "hugging-face",
    "Position models in models of Hugging Face",
    ("model", "texts", "attention", "forward, ms", "/ default", "forward and backward, ms", "/ default"),
    [
        Row(name, f"{texts} texts of {tokens} tokens", partial(_measure, name, texts, tokens))
        for name in MODELS
        for texts, tokens in SIZES
    ],
    rounds=3,
)
