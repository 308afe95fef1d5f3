"""Ask a position model once before it enters, so that what it cannot do in another model is said then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from structpe.adapters._injected import CROSS, Injected
from structpe.adapters._places import NONE, Places
from structpe.data.encode import encode
from structpe.errors import PositionError, StructPEError
from structpe.formats import tree
from structpe.positions import PositionModel, Site
from structpe.structure import Structure, path
from structpe.transforms import grid

__all__ = ["check_trial", "check_width"]


def check_trial(injected: Injected, structures: Sequence[Structure] = ()) -> None:
    """Check that tokens can be given the terms of the layers, on a small structure that its encodings know.

    Where they know none of these, as those of an own kind of structure, the first pass tells.

    Args:
        injected: the position model.
        structures: to try, one after the other; by default a text, a tree and a grid.

    Raises:
        PositionError: it acts by something that cannot enter, or not in this attention, or cannot start at zero.
    """
    like = next((each for each in injected.parameters()), torch.zeros(()))
    if like.is_meta:
        return
    was = injected.training
    injected.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            for structure in structures or _samples(injected.structures == "path"):
                if _answers(injected, structure, like):
                    return
    finally:
        injected.train(was)


def check_width(position: PositionModel, width: int) -> None:
    """Check that a position model that acts on the input is as wide as the hidden vectors of a model.

    Raises:
        PositionError: it is not.
    """
    if position.sites & {"inputs", "layer"} and position.dims.width != width:
        raise PositionError(
            f"the hidden vectors have {width} numbers and all heads together {position.dims.width}, so that a position "
            f"model that acts on the input does not fit; choose one that acts in attention"
        )


def _samples(only_texts: bool) -> list[Structure]:
    text = path(["a", "b", "c"])
    return [text] if only_texts else [text, tree(["a", "b", "c"], [0, 1, 1]), grid((2, 2))]


def _answers(injected: Injected, structure: Structure, like: Tensor) -> bool:
    """Whether the position model can be asked about a structure; if so it is, with one more token without a unit."""
    dims, units = injected.position.dims, structure.unit_count
    q = like.new_zeros(1, dims.heads, units + 1, dims.width // dims.heads)
    sites = [Site(layer) for layer in range(dims.layers)]
    try:
        positions = encode([structure], injected.position.encodings).to(like.device, q.dtype)
        prepared = injected.ask_prepare(positions, q)
        for site in sites:
            injected.position.terms(prepared[0], site)
    except StructPEError:
        return False
    place = torch.tensor([[NONE, *range(units)]], device=like.device)
    for site in sites:
        terms = injected.terms(prepared, site, q)
        if injected.where == "cross" and terms.maps:
            raise PositionError(CROSS)
        for change in Places(place, place, units, 1).terms(terms).maps:
            change(q, q)
    injected.mixes = any(_mixes(injected, prepared, site, like.new_ones(1, units, dims.width)) for site in sites)
    return True


def _mixes(injected: Injected, prepared: Any, site: Site, x: Tensor) -> bool:
    """Whether the vectors (1, u, d) of the first and the last unit change those of others."""
    if not injected.position.sites & {"inputs", "layer"}:
        return False
    found, (first, last) = injected.change(x, prepared, site), (x.clone(), x.clone())
    first[:, 0], last[:, -1] = 0, 0
    ahead, behind = (injected.change(each, prepared, site) for each in (first, last))
    return not torch.equal(found[:, 1:], ahead[:, 1:]) or not torch.equal(found[:, :-1], behind[:, :-1])
