"""Whether weights fit a model, before either takes memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn

from structpe.errors import StoreError, undamaged
from structpe.tasks.training.weights import KEY, VERSION

__all__ = ["check_fit"]

OTHERWISE = "give the config.yaml that they were trained with"


def check_fit(make: Callable[[], nn.Module], path: Path, remedy: str, but: Sequence[str] = ()) -> None:
    """Compare the header of a file of weights with a model without memory: a configuration may ask for any sizes.

    A file that is missing or of another version is left to :func:`structpe.tasks.training.weights.load_weights`.

    Args:
        make: the model.
        path: the file.
        remedy: what to do where it is damaged.
        but: with what names of weights begin that may differ.

    Raises:
        StoreError: the file is damaged, or has weights of other names or shapes than the model.
    """
    if (there := _shapes(path, remedy)) is None:
        return
    try:
        with torch.device("meta"):
            draft = make()
    except Exception:  # a model of someone's own may need values to be made, and others raise the same when made
        return
    here = {name: tuple(tensor.shape) for name, tensor in draft.state_dict().items()}
    names = [name for name in {**here, **there} if not name.startswith(tuple(but))]
    wrong = [name for name in names if here.get(name) != there.get(name)]
    if wrong:
        name = wrong[0]
        raise StoreError(
            f"the weights are not those of this model: {name} has {_said(there.get(name))} in the file and "
            f"{_said(here.get(name))} by the configuration, and {len(wrong) - 1} others differ; "
            f"{OTHERWISE}, or {remedy}"
        ).at(path)


def _shapes(path: Path, remedy: str) -> dict[str, tuple[int, ...]] | None:
    """Of each tensor; None if the file is missing or of another version."""
    from safetensors import safe_open

    if not path.is_file():
        return None
    with undamaged(path, remedy), safe_open(path, "pt") as file:
        if (file.metadata() or {}).get(KEY, "").partition(":")[0] != VERSION:
            return None
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def _said(shape: tuple[int, ...] | None) -> str:
    return "nothing" if shape is None else f"shape {shape}"
