"""Batches in trainings of Lightning at every precision: each is one thing, its places and targets keep their dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.plugins.precision import DoublePrecision, HalfPrecision
from torch import Tensor

from structpe.adapters._tokens import TokenPositions
from structpe.adapters.texts import TextBatch
from structpe.data.batch import Batch, Example, collate
from structpe.data.features import Numbers
from structpe.encodings import Laplacian
from structpe.errors import ConfigError
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.positions.build import build
from structpe.structure import Structure
from structpe.tasks.config import make
from structpe.tasks.training.config import TrainingConfig
from structpe.tasks.training.reporting import silenced

PRECISIONS = ("bf16-true", "16-true", "64-true", "bf16-mixed", "32-true")


class Learner(LightningModule):
    """What a user writes."""

    def __init__(self, model: GraphModel) -> None:
        super().__init__()
        self.model = model

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        assert batch.target is not None
        self.target = batch.target
        return (self.model(batch) - batch.target).square().mean()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def graphs() -> list[Structure]:
    random = np.random.default_rng(0)
    return [
        Structure(
            ("",) * n,
            np.stack([np.arange(n - 1), np.arange(1, n)], axis=1),
            order=np.arange(n),
            directed=False,
            features={"x": random.standard_normal((n, 3)).astype(np.float32)},
        )
        for n in (5, 7, 4)
    ]


def fitted(precision: Any, position: Any) -> tuple[Learner, Batch]:
    config = GraphModelConfig(width=16, heads=2, layers=2, feedforward=16, norm="layer")
    built = build(position, config.dims)
    torch.manual_seed(0)
    model = GraphModel(config, built, Numbers(3), None, 1)
    targets = np.array([[1.0 + 2**-20]], dtype=np.float32)
    examples = [Example.of(each, {e: e.many([each])[0] for e in built.encodings}, targets) for each in graphs()]
    batch = collate(examples, model.grouping)
    learner = Learner(model)
    trainer = Trainer(
        accelerator="cpu",
        precision=precision,
        max_steps=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    with silenced():
        trainer.fit(learner, torch.utils.data.DataLoader([batch], batch_size=None))  # type: ignore[arg-type]
    return learner, batch


@pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning", "ignore:.*DataLoader")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_step_of_lightning_at_each_precision(precision: str) -> None:
    learner, batch = fitted(precision, [{"name": "rwse", "encoding": "random-walk"}, "t5"])
    assert all(p.isfinite().all() for p in learner.parameters())
    wanted = {"bf16-true": torch.bfloat16, "16-true": torch.float16, "64-true": torch.float64}
    assert {p.dtype for p in learner.parameters()} == {wanted.get(precision, torch.float32)}
    assert batch.target is not None
    assert torch.equal(learner.target, batch.target)


@pytest.mark.parametrize("plugin", [HalfPrecision("bf16-true"), HalfPrecision("16-true"), DoublePrecision()])
def test_what_lightning_converts_keeps_its_dtype(plugin: Any) -> None:
    """Whatever of ours is in a batch: for models of graphs, of texts, and of Hugging Face."""
    batch = Batch.of(graphs(), [Laplacian(k=2)])
    tokens = TokenPositions.of(graphs(), [[0, 1, 2]] * 3, [Laplacian(k=2)])
    texts = TextBatch({"structpe": tokens}, torch.zeros(1))
    for given in (batch, tokens, texts):
        assert plugin.convert_input({"one": given})["one"] is given


def test_a_batch_with_other_values() -> None:
    batch = Batch.of(graphs())
    changed = batch.replaced(order=batch.order.flip(0))
    assert torch.equal(changed.order, batch.order.flip(0))
    assert changed.x is batch.x
    with pytest.raises(AttributeError):
        batch.order = batch.order


@pytest.mark.parametrize("precision", ["bf16-true", "16-true", "64-true"])
def test_a_precision_that_trainings_do_not_have_is_refused(precision: str) -> None:
    with pytest.raises(ConfigError, match=r"takes one of .float32., .bf16-mixed.; given is"):
        make(TrainingConfig, {"hardware": {"precision": precision}})
