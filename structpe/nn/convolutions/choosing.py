"""The convolution that a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from structpe.errors import ConfigError
from structpe.nn.convolutions.base import CONVOLUTIONS, Convolution
from structpe.nn.convolutions.pyg import FromPyG, pyg_class, takes_edges
from structpe.plain.typed import Builder

__all__ = ["Asked", "Choice", "chosen"]

Asked: TypeAlias = str | dict[str, Any]
"""A name, or ``name`` and options."""


@dataclass(frozen=True)
class Choice:
    """A convolution that is not made yet; see :class:`Convolution`.

    Attributes:
        make: makes one of a width.
        reads_edges: whether it needs vectors of edges.
        rectifies: whether it has a rectifier of its own.
        keeps_sums: whether it is known to be an affine map.
    """

    make: Callable[[int], Convolution]
    reads_edges: bool
    rectifies: bool = False
    keeps_sums: bool = False


def chosen(asked: Asked) -> Choice:
    """The convolution of a name of ``CONVOLUTIONS``, or of the path of a class of PyTorch Geometric.

    Raises:
        ConfigError: there is none, or no such option.
        MissingExtra: PyTorch Geometric is not installed.
    """
    name, options = _split(asked)
    if "." in name:
        return Choice(partial(FromPyG, path=name, options=options), takes_edges(pyg_class(name), options))
    cls = CONVOLUTIONS[name]
    Builder(ConfigError).check_names((), options, f"convolution {name!r}")
    return Choice(cls, cls.reads_edges, cls.rectifies, cls.keeps_sums)


def _split(asked: Asked | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(asked, str):
        return asked, {}
    options = dict(asked)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError(f"a convolution is a name, or a mapping with 'name' and options; given is {dict(asked)}")
    return name, options
