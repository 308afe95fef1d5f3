"""The optimiser of a configuration, and the schedule of its learning rate."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import torch

from structpe.errors import ConfigError, located, reason_of
from structpe.plain.options import Builder
from structpe.tasks.training.config import OptimiserConfig, TrainingConfig

__all__ = ["check_optimiser", "factor", "optimiser"]


KEYS = {"lr": "learning_rate", "weight_decay": "weight_decay"}
"""Arguments of optimisers that have keys of their own."""


def optimiser(groups: Iterable[dict[str, Any]], config: TrainingConfig) -> torch.optim.Optimizer:
    """Build the optimiser for groups of parameters with their own learning rates and weight decays.

    The betas of AdamW are 0.9 and 0.98 by default (Vaswani et al. 2017, section 5.3).

    Raises:
        ConfigError: as in :func:`check_optimiser`, or the class does not take the values of the options.
    """
    check_optimiser(config.optimiser)
    # PyTorch expects tuples of numbers, and YAML has lists.
    asked, hardware = config.optimiser, config.hardware
    options: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each for name, each in asked.options.items()
    }
    cls = _found(asked.name)
    if cls is torch.optim.AdamW:
        # Fused updates all parameters in one call; a call for each takes as long as a small model's backward pass.
        # With mixed precision, Lightning does not clip gradients for a fused optimiser.
        # Neither fused nor foreach takes sharded tensors together with others.
        how = {"foreach": False} if hardware.shards else {"fused": hardware.precision == "float32"}
        options = {"betas": (0.9, 0.98), **how, **options}
    try:
        made: torch.optim.Optimizer = cls(list(groups), lr=asked.learning_rate, **options)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"training.optimiser: {asked.name} does not take the options {asked.options}: {reason_of(error)}"
        ) from None
    return made


def check_optimiser(config: OptimiserConfig) -> None:
    """Check that the class of the optimiser exists and has the options.

    Raises:
        ConfigError: there is no such class or option, an option has a key of its own, or the class has no weight decay
            and ``weight_decay`` is above 0.
    """
    with located("training.optimiser"):
        cls = _found(config.name)
        known = list(inspect.signature(cls).parameters)[1:]
        for name in (each for each in config.options if each in KEYS):
            raise ConfigError(f"{name} is not an option here; set training.optimiser.{KEYS[name]}")
        if "lr" not in known:
            raise ConfigError(f"{config.name} takes no learning rate (lr); choose another optimiser")
        Builder(ConfigError).check_names(
            [name for name in known if name not in KEYS],
            config.options,
            f"optimiser {config.name!r}",
        )
        if "weight_decay" not in known and config.weight_decay:
            raise ConfigError(f"{config.name} has no weight decay; set training.optimiser.weight_decay to 0")


def _found(name: str) -> Any:
    """Import an optimiser by its name in ``torch.optim``, or by its path."""
    module, _, last = (name if "." in name else f"torch.optim.{name}").rpartition(".")
    try:
        found = getattr(import_module(module), last, None)
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"{name} cannot be imported ({reason_of(error)}); check the path, and that its package is installed"
        ) from None
    if not (isinstance(found, type) and issubclass(found, torch.optim.Optimizer)) or found is torch.optim.Optimizer:
        raise ConfigError(
            f"{name!r} is not an optimiser; give the name of a class of torch.optim, such as AdamW or Adafactor, or "
            f"the path of a subclass of torch.optim.Optimizer"
        )
    return found


def factor(step: int, config: TrainingConfig) -> float:
    """Factor of the highest learning rate in step s = 0, 1, ...

    With w steps of warm-up and t = s + 1: t/w up to w, then sqrt(w/t) (Vaswani et al. 2017),
    (1 + cos(pi (t - w)/(steps - w)))/2, or 1.
    """
    step, warmup, schedule = step + 1, max(1, config.optimiser.warmup), config.optimiser.schedule
    if step < warmup:
        return step / warmup
    if schedule == "inverse-sqrt":
        return math.sqrt(warmup / step)
    if schedule == "cosine":
        return (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, config.steps - warmup)))) / 2
    return 1.0
