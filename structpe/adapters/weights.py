"""Weights that authors published, in position models: their names and shapes become ours.

::

    state = torch.load("pytorch_model.bin", weights_only=True)
    load_authors(structpe.build("deberta", dims), state, prefix="deberta.")

The name of the position model says whose names these are; :data:`AUTHORS` lists them. Only numbers of positions are
taken. A missing one, one too many, such as that of a further layer, or another shape is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from structpe.adapters._authors import AUTHORS, Authors, State
from structpe.errors import PositionError, listed
from structpe.positions import PositionModel
from structpe.positions.build import check_model

__all__ = ["AUTHORS", "load_authors"]


def load_authors(
    position: PositionModel,
    state: Mapping[str, Tensor],
    edges: Mapping[str, Sequence[int]] | None = None,
    prefix: str = "",
) -> PositionModel:
    """Fill a position model with weights of its authors' code, or of Hugging Face's, and return it.

    Rows of tables for values that the authors do not have, such as those of units within one node, are filled as the
    table of the model in :data:`AUTHORS` says.

    Args:
        position: of a model that ``AUTHORS`` names.
        state: a ``state_dict``, of a whole model too.
        edges: for ``graphormer`` and ``grit`` with labels of edges: of each label the rows of the authors' table of
            edges whose mean it is, one for each feature of an edge.
        prefix: what the names of the state begin with, before those of ``AUTHORS``.

    Raises:
        PositionError: nobody's names are known for the position model, or the state has not its numbers.
    """
    check_model(position, "load_authors")
    authors = next((each for each in AUTHORS if position.name in each.models), None)
    if authors is None:
        known = listed([name for each in AUTHORS for name in each.models])
        raise PositionError(
            f"no authors' names are known for position model {position.name!r}; known are those of {known}"
        )
    given = State(_stripped(state, prefix), authors.code)
    found = authors.numbers(position, given, {} if edges is None else edges)
    _check_used(authors, position, given)
    _check_shapes(position, found, authors)
    with torch.no_grad():
        for name, own in position.state_dict().items():
            own.copy_(found[name])
    return position


def _stripped(state: Mapping[str, Any], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with the prefix, without it.

    Raises:
        PositionError: there is none.
    """
    found = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    if not found:
        raise PositionError(f"no name of the state begins with {prefix!r}; its first are {listed(list(state)[:4])}")
    return found


def _check_used(authors: Authors, position: PositionModel, given: State) -> None:
    if left := [name for name in given.unused() if authors.about.search(name)]:
        raise PositionError(
            f"position model {position.name!r} has no place for {listed(left)} of {authors.code}; build it with as "
            f"many layers and the same options as the model of the state"
        )


def _check_shapes(position: PositionModel, found: Mapping[str, Tensor], authors: Authors) -> None:
    for name, own in position.state_dict().items():
        if name not in found:
            raise PositionError(f"{authors.code} has no numbers for {name!r} of position model {position.name!r}")
        if found[name].shape != own.shape:
            raise PositionError(
                f"{name!r} of position model {position.name!r} has shape {tuple(own.shape)}, and {authors.code} gives "
                f"{tuple(found[name].shape)}; build the position model with the sizes of the state"
            )
