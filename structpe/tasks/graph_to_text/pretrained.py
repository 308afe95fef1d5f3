"""Pretrained models of Hugging Face that write texts, with position models in their attention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.adapters.texts import TextBatch, TextExample, Texts
from structpe.adapters.transformers import register
from structpe.errors import ConfigError
from structpe.formats import Item
from structpe.nn.search import SearchConfig
from structpe.tasks.graph_to_text.generator import TextModel

__all__ = ["Pretrained", "PretrainedTextModel"]


class Pretrained(nn.Module):
    """A model of Hugging Face that can be saved during training: weights used in two places are saved once.

    Args:
        model: the model.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model
        self.register_state_dict_post_hook(_once)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(_twice)  # type: ignore[no-untyped-call]

    def __setstate__(self, state: dict[str, Any]) -> None:
        register()  # in another process
        super().__setstate__(state)  # type: ignore[no-untyped-call]


def _once(module: nn.Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    del metadata
    for name in _repeated(module):
        del state[prefix + name]


def _twice(module: nn.Module, state: dict[str, Any], prefix: str, *others: Any) -> None:
    del others
    for name, first in _repeated(module).items():
        if prefix + first in state:
            state[prefix + name] = state[prefix + first]


def _repeated(module: nn.Module) -> dict[str, str]:
    """For each further name of a parameter, its first name."""
    first: dict[nn.Parameter, str] = {}
    return {
        name: first[p]
        for name, p in module.named_parameters(remove_duplicate=False)
        if first.setdefault(p, name) != name
    }


class PretrainedTextModel(TextModel):
    """A pretrained model.

    Args:
        model: with its position models, as a module that can be saved.
        preparer: makes its examples and batches.
        position_rate: factor of the learning rate of the position models.
    """

    uses_all = False  # some checkpoints have unused parameters

    def __init__(self, model: Pretrained, preparer: Texts, position_rate: float = 1.0) -> None:
        self.model: Pretrained = model
        self.preparer, self.position_rate = preparer, position_rate
        self.collate = preparer.collate

    def examples(self, items: Iterable[Item], every_text: bool = False, jobs: int = 1) -> Sequence[TextExample]:
        return self.preparer.examples(items, every_text, jobs)

    def loss(self, batch: TextBatch, smoothing: float) -> tuple[Tensor, Tensor]:
        assert batch.labels is not None
        try:
            logits, labels = self.preparer.kind.scores(self.model.model, dict(batch.given), batch.labels)
        except IndexError as error:  # a text is longer than a table of positions
            raise ConfigError(
                f"the checkpoint cannot read a text of {batch.given['input_ids'].shape[1]} tokens, or write one of "
                f"{batch.labels.shape[1]} ({error}); lower prepare.longest_target, or leave long graphs out"
            ) from None
        there = labels != -100
        total = functional.cross_entropy(
            logits[there].float(), labels[there], reduction="sum", label_smoothing=smoothing
        )
        return total, there.sum()

    def texts(self, examples: Sequence[Any], config: SearchConfig, device: torch.device) -> list[str]:
        """Write the texts. The length penalty is Hugging Face's: log-probabilities are divided by length^a."""
        batch = self.preparer.collate(examples, writes=True).to(device)
        model, read = self.model.model, batch.given["input_ids"].shape[1]
        try:
            with torch.no_grad():
                found = model.generate(
                    **batch.given,
                    num_beams=config.beam,
                    length_penalty=config.length_penalty if config.beam > 1 else None,
                    max_new_tokens=config.longest,
                    do_sample=False,
                    pad_token_id=self.preparer.padding,
                    eos_token_id=self.preparer.last,
                )
        except IndexError as error:  # as of loss
            raise ConfigError(
                f"the checkpoint cannot read a text of {read} tokens, or write one of {config.longest} ({error}); "
                f"lower search.longest, or leave long graphs out"
            ) from None
        return [self.preparer.text(row) for row in self.preparer.kind.written(found, read).tolist()]

    def rate(self, name: str) -> float:
        return self.position_rate if ".structpe." in name else 1.0
