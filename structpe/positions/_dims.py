"""The sizes that a position model is built for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from structpe.errors import PositionError
from structpe.plain.bounds import HEADS, LAYERS, WIDTH
from structpe.plain.typed import Builder, Checked

__all__ = ["Dims", "check_dims"]


@dataclass(frozen=True)
class Dims(metaclass=Checked):
    """The sizes that a position model is built for.

    Args:
        width: d, of the hidden vectors.
        heads: h; each has width d_h = d / h.
        layers: l.

    Raises:
        PositionError: a size below 1, or a width that the heads do not divide; or sizes of other names.
    """

    width: int
    heads: int
    layers: int

    @classmethod
    def _bound(cls, given: tuple[Any, ...], sizes: dict[str, Any]) -> Any:
        """The arguments of the constructor."""
        return Builder(PositionError).bound(cls.__init__, given, sizes, "Dims")

    def __post_init__(self) -> None:
        sizes = (("width", self.width), ("number of heads", self.heads), ("number of layers", self.layers))
        for name, size in sizes:
            if size < 1:
                raise PositionError(f"the {name} is {size}; give 1 or more")
        for name, size, most in (
            ("width", self.width, WIDTH),
            ("heads", self.heads, HEADS),
            ("layers", self.layers, LAYERS),
        ):
            if size > most:
                raise PositionError(f"{name} is {size}; at most {most} is allowed, give a smaller number")
        if self.width % self.heads:
            more = self.width + self.heads - self.width % self.heads
            raise PositionError(
                f"{self.heads} heads do not divide the width {self.width}; the next that they divide is {more}"
            )

    @property
    def head(self) -> int:
        """d_h, width of one head."""
        return self.width // self.heads


def check_dims(given: Any, whose: str) -> None:
    """Check that what a position model is built for are sizes.

    Args:
        given: the sizes.
        whose: what is built, in errors.

    Raises:
        PositionError: they are not.
    """
    if not isinstance(given, Dims):
        raise PositionError(f"{whose} is built for sizes, Dims(width, heads, layers); given is {given!r}")
