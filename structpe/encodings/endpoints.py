"""The two nodes that a token stands for, of nodes and edges as tokens."""

from __future__ import annotations

from dataclasses import dataclass

from structpe.encodings._tokens import endpoints
from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding
from structpe.structure import Structure

__all__ = ["Endpoints"]


@dataclass(frozen=True)
class Endpoints(Encoding, name="endpoints"):
    """(source, target): int64 (2), places of nodes in reading order; of a token that is a node, its own twice.

    Which tokens are edges, and between which nodes, says :func:`structpe.transforms.edge_tokens.edge_tokens`; without
    it every node is a token of its own. Where there is no order, places are numbers. (Kim et al. 2022, TokenGT.)

    Raises:
        EncodingError: a token for an edge has not one source and one target.
    """

    arity = 1
    causal = True

    def one(self, structure: Structure) -> Encoded:
        return Encoded(of_units(structure, endpoints(self, structure)[1]))
