"""How attention pads the units of a flat batch: structures of similar size share a bucket."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

__all__ = ["Layout"]


@dataclass(frozen=True, eq=False)
class Layout:
    """N units of g structures, one structure after the other, and the padded buckets in which attention reads them.

    A bucket holds consecutive structures, padded to the largest of them. All buckets together have P places.

    Attributes:
        shapes: (b, n) of each bucket: its structures, and the places that each has.
        present: (b, n) of each bucket, which places hold a unit; None if all do.
        places: (P,) the unit at each place, 0 for padding; None if no structure is padded: unit i is at place i.
        where: (N,) the place of each unit; None if no structure is padded.
        cache: values that a kernel computes from the layout only, kept for the next layer and the next step.
    """

    shapes: tuple[tuple[int, int], ...]
    present: tuple[Bool[Tensor, "_ _"] | None, ...]
    places: Int[Tensor, " P"] | None = None
    where: Int[Tensor, " N"] | None = None
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, sizes: Sequence[int], ends: Sequence[int] | None = None, masked: bool = False) -> Layout:
        """The layout of structures of these sizes.

        Args:
            sizes: number of units of each structure, at least 1.
            ends: index after the last structure of each bucket; the last one is g. None for one bucket.
            masked: whether a bucket without padding has a mask, too; all layouts then have one form.
        """
        bounds = [0, *(ends or [len(sizes)])]
        shapes = tuple((end - first, int(max(sizes[first:end]))) for first, end in pairwise(bounds))
        units, cells = sum(sizes), list(accumulate((b * n for b, n in shapes), initial=0))
        if units == cells[-1] and not masked:
            return cls(shapes, (None,) * len(shapes))
        widths = np.repeat(*np.array(shapes).T[::-1])  # of the padded row of each structure
        there = np.arange(cells[-1]) < (widths.cumsum() - widths + sizes).repeat(widths)
        places = np.zeros(len(there), dtype=np.int64)
        places[there] = np.arange(units)
        present = tuple(
            torch.from_numpy(there[first:end].reshape(b, n)) if masked or n > min(sizes[a : a + b]) else None
            for (b, n), (first, end), a in zip(shapes, pairwise(cells), bounds, strict=False)
        )
        return cls(shapes, present, torch.from_numpy(places), torch.from_numpy(there.nonzero()[0]))

    @classmethod
    def full(cls, b: int, n: int) -> Layout:
        """The layout of b structures of n units each, without padding."""
        return cls(((b, n),), (None,))

    @classmethod
    def masked(cls, present: Bool[Tensor, "b n"]) -> Layout:
        """The layout of one bucket, given which places hold a unit."""
        return cls._with(((present.shape[0], present.shape[1]),), (None if bool(present.all()) else present,))

    @classmethod
    def _with(cls, shapes: tuple[tuple[int, int], ...], present: tuple[Tensor | None, ...]) -> Layout:
        if all(p is None for p in present):
            return cls(shapes, present)
        there = [torch.ones(s, dtype=torch.bool) if p is None else p for s, p in zip(shapes, present, strict=True)]
        where = torch.cat([p.flatten() for p in there]).nonzero().squeeze(1)
        places = where.new_zeros(sum(p.numel() for p in there))
        places[where] = torch.arange(len(where), device=where.device)
        return cls(shapes, present, places, where)

    def __len__(self) -> int:
        return len(self.shapes)

    @property
    def units(self) -> int:
        """N, the number of units."""
        return sum(b * n for b, n in self.shapes) if self.where is None else len(self.where)

    def mask(self, number: int) -> tuple[Bool[Tensor, "b 1 1 n"], ...]:
        """The attention mask of a bucket; empty if the bucket has no padding."""
        present = self.present[number]
        return () if present is None else (present[:, None, None, :],)

    def real(self, number: int, device: torch.device) -> Bool[Tensor, "b n"]:
        """Which places of a bucket hold a unit."""
        present = self.present[number]
        return torch.ones(self.shapes[number], dtype=torch.bool, device=device) if present is None else present

    def part(self, first: int, end: int) -> Layout:
        """The layout of the buckets first..end - 1; cached."""
        if (first, end) == (0, len(self)):
            return self
        if (first, end) not in self.cache:
            self.cache[first, end] = Layout._with(self.shapes[first:end], self.present[first:end])
        found: Layout = self.cache[first, end]
        return found

    def counts(self) -> list[int]:
        """Units of each bucket."""
        if "counts" not in self.cache:
            each = zip(self.shapes, self.present, strict=True)
            self.cache["counts"] = [b * n if p is None else int(p.sum()) for (b, n), p in each]
        found: list[int] = self.cache["counts"]
        return found

    def padded(self, x: Shaped[Tensor, "N ..."]) -> list[Shaped[Tensor, "_ _ ..."]]:
        """The rows of each bucket. Rows of padding are arbitrary and get no gradient."""
        if self.places is not None and self.where is not None:
            x = _moved(x, self.places, self.where)
        parts = torch.split(x, [b * n for b, n in self.shapes])
        return [part.view(*shape, *x.shape[1:]) for part, shape in zip(parts, self.shapes, strict=True)]

    def flat(self, rows: Sequence[Shaped[Tensor, "_ _ ..."]]) -> Shaped[Tensor, "N ..."]:
        """The rows of all units; the inverse of :meth:`padded`."""
        parts = [part.flatten(0, 1) for part in rows]
        x = parts[0] if len(parts) == 1 else torch.cat(parts)
        return x if self.where is None else _moved(x, self.where)

    def moved(self, move: Callable[[Tensor], Tensor]) -> Layout:
        """A copy with ``move`` applied to all tensors; the layout itself, if it has none."""
        if self.where is None or self.places is None:
            return self
        present = tuple(None if p is None else move(p) for p in self.present)
        return Layout(self.shapes, present, move(self.places), move(self.where))


def _moved(x: Tensor, to: Tensor, back: Tensor | None = None) -> Tensor:
    moved: Tensor = _Moved.apply(x, to, back)  # type: ignore[no-untyped-call]
    return moved


class _Moved(torch.autograd.Function):
    """x[to]. Its gradient is the selection grad[back]; without back, rows may be left out, and get 0.

    The gradient of indexing would be a sum, which is slower; here no row is selected twice.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, to: Tensor, back: Tensor | None) -> Tensor:
        ctx.moves = (to, back, len(x))
        return x.index_select(0, to)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        to, back, count = ctx.moves
        if back is None:  # the places left out are padding
            return grad.new_zeros(count, *grad.shape[1:]).index_copy_(0, to, grad), None, None
        return grad.index_select(0, back), None, None
