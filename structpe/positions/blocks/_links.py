"""How two units are linked by edges, as a small number: for models that embed edges."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.terms import Lookup

__all__ = ["LINKS", "NONE", "SELF", "WITHIN_NODE", "links"]

NONE, SELF, WITHIN_NODE = 0, 4, 5
"""No edge; a unit and itself; two units of one node. Between them 1 to 3: an edge to, from, or to and from the key."""

LINKS = 6
"""How many kinds there are."""


def links(codes: Lookup) -> Tensor:
    """(b, n, m) the kind of each pair, from the values of the encoding ``adjacency``."""
    return codes.map(lambda code: torch.where(code > SELF, WITHIN_NODE, code)).dense()
