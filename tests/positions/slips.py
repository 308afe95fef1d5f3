"""Wrong terms, as somebody would write them, and what is said of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import structpe
from structpe.encodings import Encoding, UndirectedDistance
from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.positions import Dims, PositionModel
from structpe.terms import Factor, Lookup, Terms
from tests.shapes import unchecked

DIMS = Dims(8, 2, 1)
GRAPH = structpe.path(["a", "b", "c"])
FAR = UndirectedDistance()


def own(encoding: Encoding = FAR, **methods: Callable[..., Any]) -> type[PositionModel]:
    """A class as somebody would write it, without a ``Spec``."""

    def __init__(self: Any, dims: Dims) -> None:
        PositionModel.__init__(self, dims, [encoding])

    return type("Own", (PositionModel,), {"__init__": __init__, **methods})


def through_a_layer(cls: type[PositionModel]) -> Tensor:
    model = cls(DIMS)  # type: ignore[call-arg]
    positions = structpe.encode([GRAPH], model.encodings)
    out: Tensor = Stack(StackConfig.transformer(DIMS, 16), model).padded(torch.randn(1, 3, 8), positions)
    return out


def terms(change: Callable[[Any], Any]) -> type[PositionModel]:
    return own(terms=lambda self, prepared, site: change(prepared[FAR]))


def lookup(rows: int = 0, index: int = 0, dtype: torch.dtype = torch.long) -> Lookup:
    return Lookup(torch.zeros(2, 2), torch.full((1, 2), rows), torch.full((1, 3, 3), index, dtype=dtype))


TERMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "none": (
        lambda d: None,
        r"'Own': terms gives None, and must give Terms\(...\), Terms\(\) for none; is there a return",
    ),
    "lookup": (lambda d: d, r"'Own': terms gives Lookup, and must give Terms"),
    "no tuple": (
        lambda d: Terms(bias=d),
        r"Terms\(bias=...\) takes a tuple, and was given one Lookup; write bias=\(it,\)",
    ),
    "a tensor": (
        lambda d: Terms(mask=torch.ones(1, 1, 3, 3).bool()),
        r"Terms\(mask=...\) takes a tuple, and was given one",
    ),
    "a list": (lambda d: Terms(bias=[d]), r"takes a tuple of Lookup or SparsePairs or Tensor, and was given list"),  # type: ignore[arg-type]
    "numpy": (lambda d: Terms(bias=(torch.zeros(1, 2, 3, 3).numpy(),)), "and was given ndarray"),  # type: ignore[arg-type]
    "map none": (
        lambda d: Terms(bias=(d.map(lambda t: None),)),
        r"with a row for each of the 3 distinct values, .*; it made None",
    ),
    "map mean": (lambda d: Terms(bias=(d.map(lambda t: t.float().mean()),)), r"it made shape \(\)"),
    "map turned": (lambda d: Terms(bias=(d.map(lambda t: t[None].expand(2, -1)),)), r"it made shape \(2, 3\)"),
    "map flat": (
        lambda d: Terms(bias=(d.map(lambda t: t.float()),)),
        r"the table of a bias has shape \(\); .* \(2 or 1\)",
    ),
    "heads": (
        lambda d: Terms(bias=(d.map(lambda t: t[:, None].expand(-1, 3)),)),
        r"the table of a bias has shape \(3,\)",
    ),
    "batch": (lambda d: Terms(bias=(torch.zeros(5, 2, 3, 3),)), r"bias has shape \(5, 2, 3, 3\)"),
    "index real": (
        lambda d: Terms(bias=(lookup(dtype=torch.float),)),
        r"the index of a lookup is \(b or 1, n, m\) of torch.uint8, .* or int64; given is .* of torch.float32",
    ),
    "index bits": (lambda d: Terms(bias=(lookup(dtype=torch.bool),)), "given is .* of torch.bool"),
    "index far": (
        lambda d: Terms(bias=(lookup(index=7),)),
        "the index of a bias names place 7 of a list of rows of 2; give 0 to 1",
    ),
    "index negative": (lambda d: Terms(bias=(lookup(index=-7),)), "names place -7 of a list of rows of 2"),
    "rows far": (lambda d: Terms(bias=(lookup(rows=9),)), "the rows of a bias names place 9 of a table of 2"),
    "maps none": (lambda d: Terms(maps=(lambda q, k: None,)), r"must return both, \(q', k'\); it returns None"),  # type: ignore[arg-type, return-value]
    "maps one": (lambda d: Terms(maps=(lambda q, k: q,)), "it returns Tensor"),  # type: ignore[arg-type, return-value]
    "maps width": (lambda d: Terms(maps=(lambda q, k: (q[..., :2], k),)), "queries of width 2 and keys of width 4"),
    "maps and vectors": (
        lambda d: Terms(
            maps=(lambda q, k: (q.repeat(1, 1, 1, 3), k.repeat(1, 1, 1, 3)),),
            key=(d.map(lambda t: t[:, None, None].float().expand(-1, 2, 4)),),
        ),
        "the vectors of a key have width 4, and the queries and keys .* have width 12 after the maps; use only one",
    ),
    "maps bare": (
        lambda d: Terms(maps=lambda q, k: (q, k)),
        r"Terms\(maps=...\) takes a tuple, and was given one function",
    ),  # type: ignore[arg-type]
    "factor": (
        lambda d: Terms(factors=(Factor(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 5)),)),
        "the right of a factor",
    ),
    "act": (lambda d: Terms(act=3), r"Terms\(act=...\) takes a function of scores; given is 3"),  # type: ignore[arg-type]
    "scale": (lambda d: Terms(scale=None), r"Terms\(scale=...\) takes a number; given is None"),  # type: ignore[arg-type]
}


def said(change: Callable[[Any], Any]) -> str:
    """What users see of it; the tests' checks of annotations would come first. Nothing where it is accepted."""
    try:
        with unchecked():
            through_a_layer(terms(change))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
