"""Weisfeiler-Lehman roles: nodes with similar surroundings have the same number."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from structpe.encodings._nearby import neighbours
from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding, check_limit, check_sizes
from structpe.structure import Ids, Structure

__all__ = ["WeisfeilerLehman"]


@dataclass(frozen=True)
class WeisfeilerLehman(Encoding, name="weisfeiler-lehman"):
    """role(u): the number of the unit's colour after some rounds of Weisfeiler-Lehman refinement.

    All nodes begin with the colour "1". In each round a node's new colour is the MD5 sum of the text
    ``own_neighbour_neighbour_...``, with the sorted colours of its distinct neighbours in any direction. MD5 gives the
    same colour on every machine, and to equivalent nodes of different structures. Values: 1 + i is ``roles[i]``, 0 an
    unknown colour. (Zhang et al. 2020, section 3.1.)

    The authors' code, and that of Dwivedi & Bresson, discards its second round, so that a role depends only on the
    degree of a node: ``iterations=1``. Then the numbers are those of the code if :meth:`fit` has seen one graph, as the
    code does. (In later rounds the code refines numbers of colours, which depend on the other graphs of the data set;
    here the colours themselves are refined.)

    Args:
        roles: the known colours, sorted; :meth:`fit` finds them.
        iterations: number of rounds; None for the number after which no round distinguishes more nodes of a structure.
        most: how many colours :meth:`fit` keeps, the most frequent ones; None for all.

    Raises:
        EncodingError: no role is known yet, or a number below 1.
    """

    arity = 1

    roles: tuple[str, ...] = ()
    iterations: int | None = 1
    most: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", tuple(self.roles))
        check_limit(self, self.iterations, "iterations")
        check_limit(self, self.most, "most")
        if self.iterations is not None:
            check_sizes(self, iterations=self.iterations)

    @property
    def size(self) -> int:
        """Number of values, and of the rows of a learned table."""
        return 1 + len(self.roles)

    def fit(self, structures: Sequence[Structure]) -> WeisfeilerLehman:
        near = [neighbours(s) for s in structures]
        rounds = self.iterations or max(map(_rounds, near), default=1)
        times = Counter(colour for each in near for colour in _colours(each, rounds))
        ranked = sorted(times, key=lambda colour: (-times[colour], colour))
        return replace(self, roles=tuple(sorted(ranked[: self.most])), iterations=rounds)

    def one(self, structure: Structure) -> Encoded:
        if not self.roles or self.iterations is None:
            raise self.error(
                structure,
                "it knows no role yet; fit it to the training structures first: encoding = encoding.fit(structures)",
            )
        colours = _colours(neighbours(structure), self.iterations)
        numbers = np.array([self._numbers.get(colour, 0) for colour in colours])
        return Encoded(of_units(structure, numbers))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {colour: i for i, colour in enumerate(self.roles, start=1)}


def _colours(near: Sequence[Ids], rounds: int) -> list[str]:
    colours = ["1"] * len(near)
    for _ in range(rounds):
        colours = _refined(near, colours)
    return colours


def _refined(near: Sequence[Ids], colours: Sequence[str]) -> list[str]:
    texts = ["_".join([own, *sorted(colours[i] for i in each)]) for own, each in zip(colours, near, strict=True)]
    # Half of the sum is enough to distinguish colours, and sorts as the whole does.
    return [hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:16] for text in texts]


def _rounds(near: Sequence[Ids]) -> int:
    """Number of rounds until one does not distinguish more nodes than the one before."""
    colours = _refined(near, ["1"] * len(near))
    for rounds in range(1, len(near) + 1):
        finer = _refined(near, colours)
        if len(set(finer)) == len(set(colours)):
            return rounds
        colours = finer
    return len(near)
