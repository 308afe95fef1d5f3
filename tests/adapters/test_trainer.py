"""Models with position models, trained by Hugging Face's Trainer and with PEFT's adapters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from peft import LoraConfig, get_peft_model

from structpe.adapters import Handle, inject
from structpe.adapters.transformers import load
from tests.adapters.models import GRAPH, HEADED, SMALL, logits, small, tokenizer, without_dropout
from tests.representatives import only

POSITION = {"name": "shaw", "encoding": "undirected-distance"}
CHECKPOINTING = next(
    name for name in ("activation_checkpointing", "gradient_checkpointing") if hasattr(hf.TrainingArguments, name)
)
"""The argument's name; later versions of transformers warn of the second."""
ITEMS: dict[str, list[dict[str, Any]]] = {
    "t5": [{"structure": GRAPH, "target": "the graph says a"}, {"structure": SMALL, "target": "b says c"}],
    "llama": [{"structure": GRAPH, "target": "the graph says a"}, {"structure": SMALL, "target": "b says c"}],
    "bert": [
        {"structure": GRAPH, "labels": [-100, 4, 5, 6, 7, -100]},
        {"structure": SMALL, "labels": [-100, 5, 4, -100]},
    ],
}


def trained(handle: Handle, folder: Path, model: Any = None, resume: bool = False, **options: Any) -> Any:
    """The trainer, after its training."""
    model = handle.model if model is None else model
    asked = {"max_steps": 4, "learning_rate": 0.01, "per_device_train_batch_size": 2, "save_strategy": "no"}
    arguments = hf.TrainingArguments(
        output_dir=str(folder), remove_unused_columns=False, report_to=[], disable_tqdm=True, use_cpu=True,
        **(asked | options),
    )  # fmt: skip
    items = ITEMS[handle.model.config.model_type]
    trainer = hf.Trainer(model, arguments, handle.collator(tokenizer()), items * 2, eval_dataset=items)
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def injected(name: str) -> Handle:
    return inject(without_dropout(small(name)), POSITION)


def numbers(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: each.detach().clone() for name, each in module.named_parameters()}


def scores(model: Any, handle: Handle) -> torch.Tensor:
    return logits(model.eval(), **handle.collator(tokenizer())(ITEMS[handle.model.config.model_type]))


@pytest.mark.parametrize("name", only(sorted(ITEMS), "t5"))
def test_the_trainer_trains_evaluates_and_saves(name: str, tmp_path: Path) -> None:
    handle = injected(name)
    before = numbers(handle.model)
    trainer = trained(handle, tmp_path, max_steps=12)
    average = trainer.state.log_history[-1]["train_loss"]
    assert trainer.evaluate()["eval_loss"] < average
    same = {key for key, each in numbers(handle.model).items() if torch.equal(each, before[key])}
    assert not [key for key in same if "structpe" in key]
    trainer.save_model(str(tmp_path / "out"))
    assert torch.equal(scores(load(HEADED[name], tmp_path / "out"), handle), scores(handle.model, handle))


@pytest.mark.parametrize("name", only(sorted(ITEMS), "bert"))
def test_the_trainer_goes_on_where_it_stopped(name: str, tmp_path: Path) -> None:
    options = {"lr_scheduler_type": "constant", "save_strategy": "steps", "save_steps": 2}
    whole = injected(name)
    trained(whole, tmp_path / "whole", **options)
    trained(injected(name), tmp_path / "parts", max_steps=2, **options)
    again = injected(name)
    trained(again, tmp_path / "parts", resume=True, **options)
    for key, expected in numbers(whole.model).items():
        assert torch.equal(again.model.get_parameter(key), expected), key


@pytest.mark.parametrize("name", only(sorted(ITEMS), "llama"))
def test_the_trainers_gradient_checkpointing_changes_nothing(name: str, tmp_path: Path) -> None:
    plain, checkpointed = injected(name), injected(name)
    trained(plain, tmp_path)
    trained(checkpointed, tmp_path, **{CHECKPOINTING: True})
    assert any(getattr(each, "gradient_checkpointing", False) for each in checkpointed.model.modules())
    for key, expected in numbers(plain.model).items():
        assert torch.allclose(checkpointed.model.get_parameter(key), expected, atol=1e-4), key


@pytest.mark.parametrize("name", only(sorted(ITEMS), "t5"))
def test_lora_and_positions_train_alone_and_are_saved_together(name: str, tmp_path: Path) -> None:
    model = without_dropout(small(name))
    targets = ["query", "value"] if name == "bert" else ["q", "v"] if name == "t5" else ["q_proj", "v_proj"]
    wrapped = get_peft_model(model, LoraConfig(r=2, target_modules=targets))
    handle = inject(model, POSITION, freeze=True)
    before = numbers(wrapped)
    trained(handle, tmp_path, wrapped)
    moved = {key for key, each in numbers(wrapped).items() if not torch.equal(each, before[key])}
    assert moved == {key for key in before if "structpe." in key or "lora_" in key}
    merged: Any = wrapped.merge_and_unload()
    found = scores(merged, handle)
    merged.save_pretrained(tmp_path / "out")
    assert torch.allclose(scores(load(HEADED[name], tmp_path / "out"), handle), found, atol=1e-5)


def test_peft_freezes_positions_that_are_there_already() -> None:
    handle = injected("t5")
    wrapped = get_peft_model(handle.model, LoraConfig(r=2, target_modules=["q", "v"]))
    assert not [name for name, each in wrapped.named_parameters() if each.requires_grad and "structpe." in name]
