"""The values of the encodings for a batch, as position models read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.terms import Lookup, Pairs, SparsePairs, Toeplitz

__all__ = [
    "Positions",
]


class _NoEncoding(PositionError, KeyError):
    """The key of a look-up in positions is not an encoding."""


class Positions(Mapping[Encoding, Any]):
    """The values of the encodings for a batch: (b, m, ...) per unit, :class:`Lookup` or :class:`SparsePairs` per pair.

    Args:
        encodings: the positions of the keys; for pairs, of queries and keys.
        rows: which units are the queries; all by default. A decoding step has one.
        present: (b, m) which places of the keys have a unit, for models that read all units of a structure before
            attention does; None if no row is padded.
        single: whether they are the positions of one structure, which may serve several rows.
    """

    def __init__(
        self,
        encodings: Mapping[Encoding, Tensor | Lookup | SparsePairs],
        rows: slice | None = None,
        present: Tensor | None = None,
        single: bool = False,
    ) -> None:
        self._encodings, self._rows, self.present, self.single = dict(encodings), rows, present, single

    def __getitem__(self, encoding: Encoding | str) -> Any:
        """The values of an encoding, or of the only one of a name.

        Raises:
            PositionError: the batch was not encoded by it, or by several of this name.
        """
        if isinstance(encoding, str):
            encoding = self._named(encoding)
        if encoding not in self._encodings:
            known = ", ".join(repr(e) for e in self._encodings) or "none"
            if not isinstance(encoding, Encoding):
                raise _NoEncoding(
                    f"look positions up by the encoding itself, such as prepared[self.encodings[0]]; given is "
                    f"{encoding!r}; the batch was encoded by: {known}"
                )
            raise PositionError(f"the batch was not encoded by {encoding!r}; it was by: {known}")
        return self._encodings[encoding]

    def _named(self, name: str) -> Encoding:
        found = [encoding for encoding in self._encodings if encoding.name == name]
        if len(found) != 1:
            known = ", ".join(repr(e) for e in self._encodings) or "none"
            count = "several encodings" if found else "no encoding"
            raise _NoEncoding(f"the batch has {count} named {name!r}; it was encoded by: {known}")
        return found[0]

    def __iter__(self) -> Iterator[Encoding]:
        return iter(self._encodings)

    def __len__(self) -> int:
        return len(self._encodings)

    def queries(self, encoding: Encoding) -> Tensor:
        """(b, n, ...) the values of an encoding of arity 1 at the queries only."""
        of_keys: Tensor = self[encoding]
        return of_keys if self._rows is None else of_keys[:, self._rows]

    def step(self, start: int, stop: int) -> Positions:
        """Only the queries start..stop-1 over the keys 0..stop-1, as a decoder with a KV cache needs them."""
        rows = slice(start, stop)
        made: dict[Encoding, Any] = {}
        # Not a comprehension, by which torch.compile would compile each number of rows anew.
        for encoding, p in self._encodings.items():
            made[encoding] = p[:, :stop] if isinstance(p, Tensor) else p.queries(rows)
        return Positions(made, rows, None if self.present is None else self.present[:, :stop], self.single)

    def of(self, present: Tensor | None) -> Positions:
        """The same, with units in these places of the keys."""
        return Positions(self._encodings, self._rows, present, self.single)

    def repeated(self, times: int, lookups: bool) -> Positions:
        """The positions of one structure, for several rows.

        Args:
            times: number of rows.
            lookups: whether lookups are repeated too. Attention by kernels is faster if rows share them.
        """
        present = None if self.present is None else self.present.expand(times, -1)
        made = {e: p if isinstance(p, Lookup) and not lookups else _repeated(p, times) for e, p in self.items()}
        return Positions(made, self._rows, present)

    def replaced(self, encodings: Mapping[Encoding, Any]) -> Positions:
        """The same with other values of these encodings."""
        return Positions({**self._encodings, **encodings}, self._rows, self.present, self.single)

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> Positions:
        """The same on another device; ``dtype`` is for the real-valued ones, which are of float32 at least."""
        real = None if dtype is None else torch.promote_types(dtype, torch.float32)
        return self.moved(lambda x: x.to(device, real if x.is_floating_point() else None))

    def moved(self, move: Callable[[Tensor], Tensor]) -> Positions:
        """A copy whose tensors are what ``move`` makes of these."""

        def each(x: Any) -> Any:
            if isinstance(x, Tensor):
                return move(x)
            if not is_dataclass(x):  # a size or a flag
                return x
            whole: type[Any] = type(x)
            return whole(**{field.name: each(getattr(x, field.name)) for field in fields(x) if field.init})

        present = None if self.present is None else move(self.present)
        encodings = {encoding: each(p) for encoding, p in self._encodings.items()}
        return Positions(encodings, self._rows, present, self.single)


def _repeated(values: Any, times: int) -> Any:
    if isinstance(values, Tensor):
        return values.expand(times, *values.shape[1:])
    if isinstance(values, Lookup):
        index = values.index
        index = index if isinstance(index, Toeplitz) else index.expand(times, *index.shape[1:])
        return Lookup(values.table, values.rows.expand(times, -1), index)
    count, pairs = len(values.index), values.pairs
    batch = torch.arange(times, device=pairs.batch.device).repeat_interleave(count)
    listed = Pairs(batch, pairs.query.repeat(times), pairs.key.repeat(times))
    return SparsePairs(values.table, values.index.repeat(times), listed)
