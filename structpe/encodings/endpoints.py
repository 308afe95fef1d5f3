"""The two nodes of a token, for nodes and edges as tokens."""

from __future__ import annotations

from dataclasses import dataclass

from structpe.encodings._tokens import endpoints
from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding
from structpe.structure import Structure

__all__ = ["Endpoints"]


@dataclass(frozen=True)
class Endpoints(Encoding, name="endpoints"):
    """The two nodes of a token, for nodes and edges as tokens.

    (source, target): int64 (2), places of nodes in reading order; twice its own place for a token that is a node.

    :func:`structpe.transforms.edge_tokens.edge_tokens` makes edges into tokens; without it every token is a node.
    Without an order, places are node numbers. (Kim et al. 2022, TokenGT.)

    Raises:
        EncodingError: a token of an edge does not have one source and one target.
    """

    arity = 1
    causal = True

    def one(self, structure: Structure) -> Encoded:
        return Encoded(of_units(structure, endpoints(self, structure)[1]))
