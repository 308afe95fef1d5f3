"""A language model in two parts: lower layers that stay as they are, and upper ones that are trained.

What the lower layers make of a text never changes, so it is made once for all steps, rows and seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from prompts import Prompt
from torch import Tensor, nn

from structpe.system.files import atomic_write

__all__ = ["Halves"]


class Halves:
    """A model of the Llama family whose first layers are frozen.

    Args:
        model: of Hugging Face, with its layers as ``model.model.layers``.
        at: how many layers are below.
        collate: makes batches; padding is on the left.
    """

    def __init__(self, model: Any, at: int, collate: Any) -> None:
        self.model, self.at, self.collate = model, at, collate
        for module in (*model.model.layers[:at], model.get_input_embeddings(), model.get_output_embeddings()):
            module.requires_grad_(False)

    def batch(self, prompts: Sequence[Prompt]) -> dict[str, Any]:
        """A batch of graphs with their texts."""
        made: dict[str, Any] = self.collate([{**p.item, "target": f" {p.text}"} for p in prompts])
        return made

    def logits(self, batch: dict[str, Any], below: Sequence[Tensor], last: int) -> Tensor:
        """Logits of the last units (b, last, vocabulary), by the upper layers alone.

        Args:
            batch: without labels.
            below: of each text, what the lower layers made of it, (its length, d).
            last: how many units.
        """
        ids = batch.pop("input_ids")
        rows = torch.zeros(*ids.shape, below[0].shape[1])
        for row, each in zip(rows, below, strict=True):
            row[len(row) - len(each) :] = each
        with _only(self.model.model, slice(self.at, None)):
            logits: Tensor = self.model(**batch, inputs_embeds=rows, use_cache=False, logits_to_keep=last).logits
        return logits

    @torch.no_grad()
    def below(self, prompts: Sequence[Prompt], file: Path, size: int = 8) -> list[Tensor]:
        """Of each text, with its graph before it, what the lower layers make of it; kept in a file."""
        if file.exists():
            kept: list[Tensor] = torch.load(file, weights_only=True)
            return kept
        order = sorted(range(len(prompts)), key=lambda each: len(prompts[each].ids))
        found: dict[int, Tensor] = {}
        self.model.eval()
        for at in range(0, len(order), size):
            numbers = order[at : at + size]
            batch = self.batch([prompts[each] for each in numbers])
            ids, mask = batch["input_ids"], batch["attention_mask"]
            with _only(self.model.model, slice(self.at), nn.Identity()):
                hidden = self.model.model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
            found |= {each: row[there.bool()].clone() for each, row, there in zip(numbers, hidden, mask, strict=True)}
        rows = [found[each] for each in range(len(prompts))]
        atomic_write(file, lambda path: torch.save(rows, path))
        return rows


@contextmanager
def _only(inner: Any, layers: slice, norm: nn.Module | None = None) -> Iterator[None]:
    """Within it the model has these layers only, and another norm at the end if one is given."""
    before = inner.layers, inner.norm
    inner.layers, inner.norm = inner.layers[layers], inner.norm if norm is None else norm
    try:
        yield
    finally:
        inner.layers, inner.norm = before
