"""The fifth table: models of Hugging Face with a position model beside their own attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import transformers
from samples import sample
from tables import Row, Table, number
from torch import Tensor
from turns import Way, check, medians

from structpe.adapters.transformers import TokenPositions, inject

__all__ = ["TABLE"]

WIDTH, HEADS, LAYERS, VOCABULARY, ROWS, TOKENS = 256, 4, 4, 1000, 8, 64
GRAPHS = "32 drawn trees"
"""Of 24 units each; the other tokens of a text, such as those of a prompt, have no unit."""
POSITIONS: Mapping[str, Any] = {
    "with bias": {"name": "t5", "encoding": "undirected-distance"},
    "with vectors": {"name": "shaw", "encoding": "undirected-distance"},
}
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


def _ways(name: str) -> dict[str, Callable[[], Tensor]]:
    """The hidden vectors of one batch, by each attention."""
    made: dict[str, Callable[[], Tensor]] = {}
    for way in ("sdpa", "eager", "structpe, without", *POSITIONS):
        torch.manual_seed(0)
        model = MODELS[name]().eval()  # without dropout, so that all compute the same
        ids = torch.randint(VOCABULARY, (ROWS, TOKENS), generator=torch.Generator().manual_seed(0))
        batch: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if way in ("sdpa", "eager"):
            model.set_attn_implementation(way)
        else:
            injected = inject(model, POSITIONS.get(way, POSITIONS["with bias"]))
            structures = sample(GRAPHS)[:ROWS]
            units = [np.arange(each.unit_count) for each in structures]
            positions = TokenPositions.of(structures, units, injected.position.encodings, length=TOKENS)
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


def _measure(name: str, rounds: int) -> Iterator[Sequence[str]]:
    """A line per attention: milliseconds, and how many times as long as the model's own, forward and a training step.

    Raises:
        Disagreement: one of them computes something else, where all position models start at zero.
    """
    ways = _ways(name)
    with torch.no_grad():
        check(
            f"{name}",
            {way: Way(lambda run=run: [run().numpy()], lambda found: list(found)) for way, run in ways.items()},
            1e-4,
        )
    forward = medians({way: partial(_forward, run) for way, run in ways.items()}, rounds)
    step = medians({way: partial(_step, run) for way, run in ways.items()}, rounds)
    for way in ways:
        ratios = (took[way] / took["sdpa"] for took in (forward, step))
        first, second = (number(ratio) for ratio in ratios)
        yield [name, way, number(forward[way] * 1e3), first, number(step[way] * 1e3), second]


TABLE = Table(
    "Position models in models of Hugging Face",
    ("model", "attention", "forward, ms", "/ sdpa", "forward and backward, ms", "/ sdpa"),
    [Row(name, f"{ROWS} texts of {TOKENS} tokens", partial(_measure, name)) for name in MODELS],
    rounds=7,
)
