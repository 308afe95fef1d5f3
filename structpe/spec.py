"""What a position model claims: its row of the survey's Table 1. Lists show it without PyTorch, which models need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from structpe.errors import PositionError

__all__ = ["Cells", "Spec"]


@dataclass(frozen=True)
class Cells:
    """The cells of a row of Table 1.

    Attributes:
        reference: reference point: absolute, relative or both.
        injection: added to the input (APE), to the attention (MAM), both, or neither.
        learnable: whether numbers are learned from data.
        recurring: whether the information enters at each layer again.
        unbound: whether inputs longer than any fixed length are distinguished.
        params: number of parameters, as a formula.
    """

    reference: Literal["A", "R", "B"]
    injection: Literal["APE", "MAM", "both", "-"]
    learnable: bool
    recurring: bool
    unbound: bool
    params: str

    def __post_init__(self) -> None:
        _one_of("the reference", self.reference, ("A", "R", "B"))
        _one_of("the injection", self.injection, ("APE", "MAM", "both", "-"))


def _one_of(what: str, given: object, known: tuple[str, ...]) -> None:
    if given not in known:
        raise PositionError(f"{what} of a Spec is {given!r}; give one of {', '.join(known)}")


@dataclass(frozen=True)
class Spec:
    """The row of Table 1 of a position model: what it claims, all of it measured by the tests.

    Attributes:
        cite: BibTeX key: the name of a file in ``structpe/references``.
        structure: what it was made for: sequence, grid, tree or graph.
        cells: our claims; ``params`` in d, h, l, dh = d/h and the model's own ``sizes``.
        table1: the survey's printed cells; None if the survey has no such row.
        note: why the two differ, if they do.
        not_compiled: why ``torch.compile`` does not trace it as one graph; empty if it does.
        not_exported: why ``torch.export`` does not trace it; empty if it does.
    """

    cite: str
    structure: Literal["sequence", "grid", "tree", "graph"]
    cells: Cells
    table1: Cells | None = None
    note: str = ""
    not_compiled: str = ""
    not_exported: str = ""

    def __post_init__(self) -> None:
        _one_of("the structure", self.structure, ("sequence", "grid", "tree", "graph"))
