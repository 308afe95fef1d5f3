"""A position model gives numbers to positions and says where they enter; a row of the survey's Table 1.

It is asked at four sites and answers only where it has something to say::

    prepare(positions)                once per batch: whatever all layers share (a path encoder, a table of buckets)
    inputs(x, prepared)               before the first layer, on the units of the queries         (APE)
    layer(x, prepared, site)          before each layer, likewise                                 (recurring APE)
    sources(sources, prepared, site)  before the projections of each layer: what queries, keys and values are made of
    terms(prepared, site)             inside the attention of each layer                          (MAM)

A model whose attention is not the one equation is a :class:`Block`: it brings an attention of its own.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

from torch import Tensor, nn

from structpe.encodings._guards import check_fields, check_key
from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.plain.bounds import HEADS, LAYERS, WIDTH
from structpe.positions._batch import Positions
from structpe.positions._guards import guard
from structpe.positions._options import check_numbers
from structpe.positions._spec import Cells, NoSpec, Spec
from structpe.registry import Registry
from structpe.terms import Terms

__all__ = ["MODELS", "Block", "Cells", "Dims", "PositionModel", "Positions", "Site", "Sources", "Spec", "Sum"]


@dataclass(frozen=True)
class Dims:
    """The sizes that a position model is built for.

    Args:
        width: d, of the hidden vectors.
        heads: h; each has width d_h = d / h.
        layers: l.

    Raises:
        PositionError: a size below 1, or a width that the heads do not divide.
    """

    width: int
    heads: int
    layers: int

    def __post_init__(self) -> None:
        sizes: list[tuple[str, Any]] = [("width", self.width), ("number of heads", self.heads)]
        for name, size in [*sizes, ("number of layers", self.layers)]:
            if isinstance(size, bool) or not isinstance(size, Integral):
                raise PositionError(f"the {name} is {size!r} ({type(size).__name__}); give a whole number, 1 or more")
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


@dataclass(frozen=True)
class Site:
    """Where a position model is asked.

    Attributes:
        layer: number of the layer, from 0.
        training: whether this is a training step, for models that draw at random then.
    """

    layer: int
    training: bool = False


@dataclass(frozen=True, eq=False)
class Sources:
    """What an attention projects. All three are the normalised hidden vectors, unless a position model says otherwise.

    Attributes:
        query: (b, n, d) of the units that attend.
        key: (b, c, d) of the units that are attended to; the last n of them are those of the queries. The ones before,
            if any, are the memory of an earlier segment.
        value: (b, c, d) of the same units.
    """

    query: Tensor
    key: Tensor
    value: Tensor


SITES = ("inputs", "layer", "sources", "terms")
GIVES: dict[str, type] = {"inputs": Tensor, "layer": Tensor, "sources": Sources, "terms": Terms}
"""What a model answers at each site."""

MODELS: Registry[type[PositionModel]] = Registry("structpe.positions", "position model", PositionError)
"""Every position model by its name."""


def _inherits(model: type, name: str) -> bool:
    return getattr(model, name) is getattr(PositionModel, name)


class PositionModel(nn.Module, ABC):
    """Gives numbers to positions. A subclass answers at the sites that it needs; the others stay silent.

    Attributes:
        spec: its row of Table 1. A model of your own needs none to be built, trained and saved.
        encodings: the encodings that it asks for; a batch must hold them all.
        sizes: values of the symbols that its formula of parameters uses beside d, h, l and dh.
    """

    name: ClassVar[str]
    if TYPE_CHECKING:
        spec: ClassVar[Spec]
    else:
        spec = NoSpec()
    _options: dict[str, Any]

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Keep what the model is built with, here and once, so that no model file can forget an option of its own."""
        self = super().__new__(cls)
        # bind_partial, because copying and unpickling make the object first, without arguments, and fill it later.
        signature = inspect.signature(cls.__init__)
        bound = signature.bind_partial(self, *given, **named)
        bound.apply_defaults()
        options = {k: v for k, v in list(bound.arguments.items())[1:] if k != "dims"}
        for free in [k for k in options if signature.parameters[k].kind is inspect.Parameter.VAR_KEYWORD]:
            options |= options.pop(free)
        check_numbers(getattr(cls, "name", cls.__name__), signature.parameters, options)
        self.__dict__["_options"] = options
        return self

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            MODELS.add(name, cls)
        if name or "name" not in dir(cls):
            cls.name = name or cls.__name__
        guard(cls, GIVES, _inherits)

    def __init__(self, dims: Dims, encodings: Sequence[Encoding], **sizes: int) -> None:
        super().__init__()
        _check_built(type(self).__name__, dims, encodings)
        self.dims, self.encodings, self.sizes = dims, tuple(encodings), sizes

    def __add__(self, other: PositionModel) -> Sum:
        """Both at once."""
        if not isinstance(other, PositionModel):
            return NotImplemented
        each = [part for model in (self, other) for part in (model.models if isinstance(model, Sum) else [model])]
        return Sum(self.dims, [part for part in each if isinstance(part, PositionModel)])

    def prepare(self, positions: Positions) -> Any:
        """What all sites of one forward pass share; handed back to them. By default the positions themselves."""
        return positions

    def inputs(self, x: Tensor, prepared: Any) -> Tensor:
        """The units (b, n, d) as the first layer shall see them."""
        del prepared
        return x

    def layer(self, x: Tensor, prepared: Any, site: Site) -> Tensor:
        """The hidden vectors (b, n, d) as the layer of this site shall see them."""
        del prepared, site
        return x

    def sources(self, sources: Sources, prepared: Any, site: Site) -> Sources:
        """What the attention of the layer of this site makes queries, keys and values of."""
        del prepared, site
        return sources

    def terms(self, prepared: Any, site: Site) -> Terms:
        """What changes in the attention of the layer of this site."""
        del prepared, site
        return Terms()

    @property
    def sites(self) -> frozenset[str]:
        """At which of ``inputs``, ``layer``, ``sources`` and ``terms`` it has something to say."""
        return frozenset(site for site in SITES if not _inherits(type(self), site))

    @property
    def own_attention(self) -> bool:
        """Whether it brings an attention of its own, in place of the layers': see :class:`Block`."""
        return False

    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        """As :meth:`Block.attend`, which other models do not have."""
        raise PositionError(f"position model {self.name!r} has no attention of its own; ask for its terms")

    @property
    def causal(self) -> bool:
        """Whether a decoder may use it: nothing it says of the first units changes when more are added."""
        return all(encoding.causal for encoding in self.encodings)

    def options(self) -> dict[str, Any]:
        """What it was built with beside the sizes: ``type(model)(dims, **model.options())`` is such a model again."""
        return dict(self._options)

    def claimed_params(self) -> int:
        """The formula of the spec, evaluated."""
        known = {"d": self.dims.width, "h": self.dims.heads, "l": self.dims.layers, "dh": self.dims.head}
        formula = self.spec.cells.params
        try:
            return int(eval(formula, {"__builtins__": {}}, known | self.sizes))  # our own formula
        except (NameError, SyntaxError, TypeError, ZeroDivisionError) as error:
            letters = ", ".join([*known, *self.sizes])
            raise PositionError(
                f"position model {self.name!r}: the formula of parameters {formula!r} cannot be evaluated ({error}); "
                f"it knows {letters}; give further letters as super().__init__(dims, encodings, LETTER=SIZE)"
            ) from error


class Block(PositionModel, ABC):
    """A position model whose attention is not the one equation, and which therefore computes it itself.

    A layer then has no attention of its own. Everything else is as for any position model: sites, encodings, spec,
    registry; the formula of parameters counts the projections, which other models leave to the layer.
    """

    @property
    def own_attention(self) -> bool:
        return True

    @property
    def causal(self) -> bool:
        """A block keeps no cache of keys and values, so that it does not serve where a text is written unit by unit."""
        return False

    @abstractmethod
    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        """What the attention of a layer adds to its units.

        Args:
            x: (b, n, d) the normalised hidden vectors of all units.
            prepared: what :meth:`prepare` gave, or the attention of the layer before.
            site: which layer this is.
            terms: of whatever else acts on attention; masks at least, which say where padding is.

        Returns:
            (b, n, d), and what the next layer shall be handed as ``prepared``: a state of pairs, say.

        Raises:
            UnsupportedTerm: it cannot heed one of the terms.
        """


class Sum(PositionModel):
    """Several position models at once: inputs one after the other, terms added.

    Args:
        models: the summands; none means no position information at all.

    Raises:
        PositionError: one was built for other sizes; two of them bring an attention of their own, or one does and
            another changes what is projected.
    """

    def __init__(self, dims: Dims, models: Sequence[PositionModel]) -> None:
        super().__init__(dims, tuple(dict.fromkeys(e for model in models for e in model.encodings)))
        self.models = nn.ModuleList(models)
        parts = list(_parts(models))
        if other := [model for model in parts if model.dims != dims]:
            raise PositionError(
                f"{other[0].name} was built for {other[0].dims}, the sum is for {dims}; build both for one Transformer"
            )
        if len(blocks := [model.name for model in parts if model.own_attention]) > 1:
            raise PositionError(f"{' and '.join(blocks)} each bring an attention of their own; only one of a sum may")
        if blocks and (lost := [model.name for model in parts if "sources" in model.sites]):
            raise PositionError(
                f"{blocks[0]} brings an attention of its own, which does not ask what queries, keys and values are "
                f"made of, so that {' and '.join(lost)} would not be heard; leave one of them out"
            )

    def prepare(self, positions: Positions) -> list[Any]:
        return [model.prepare(positions) for model in self._each()]

    def inputs(self, x: Tensor, prepared: list[Any]) -> Tensor:
        for model, mine in self._pairs(prepared):
            x = model.inputs(x, mine)
        return x

    def layer(self, x: Tensor, prepared: list[Any], site: Site) -> Tensor:
        for model, mine in self._pairs(prepared):
            x = model.layer(x, mine, site)
        return x

    def sources(self, sources: Sources, prepared: list[Any], site: Site) -> Sources:
        for model, mine in self._pairs(prepared):
            sources = model.sources(sources, mine, site)
        return sources

    def terms(self, prepared: list[Any], site: Site) -> Terms:
        return sum((m.terms(p, site) for m, p in self._pairs(prepared)), Terms())

    @property
    def sites(self) -> frozenset[str]:
        """At which one of the summands has something to say."""
        return frozenset().union(*(model.sites for model in self._each()))

    @property
    def own_attention(self) -> bool:
        """Whether one of the summands brings an attention of its own."""
        return any(model.own_attention for model in self._each())

    def attend(self, x: Tensor, prepared: list[Any], site: Site, terms: Terms) -> tuple[Tensor, list[Any]]:
        which, block = next((i, model) for i, model in enumerate(self._each()) if model.own_attention)
        out, mine = block.attend(x, prepared[which], site, terms)
        return out, [*prepared[:which], mine, *prepared[which + 1 :]]

    @property
    def causal(self) -> bool:
        """Whether a decoder may use all of the summands."""
        return all(model.causal for model in self._each())

    def claimed_params(self) -> int:
        """The formulas of the summands, added."""
        return sum(model.claimed_params() for model in self._each())

    def _pairs(self, prepared: list[Any]) -> Iterator[tuple[PositionModel, Any]]:
        """Each summand, and what it prepared."""
        if not isinstance(prepared, list):
            raise PositionError(
                f"a sum of position models takes what its prepare makes, a list of what each of them makes, and was "
                f"given {type(prepared).__name__}: prepared = model.prepare(structpe.encode(structures, "
                f"model.encodings))"
            )
        return zip(self._each(), prepared, strict=True)

    def _each(self) -> Iterator[PositionModel]:
        for model in self.models:
            assert isinstance(model, PositionModel)
            yield model


def _check_built(name: str, dims: Any, encodings: Any) -> None:
    """Check that a model is built with sizes and a list of encodings."""
    if not isinstance(dims, Dims):
        raise PositionError(f"{name} is built for sizes, Dims(width, heads, layers); given is {dims!r}")
    if isinstance(encodings, Encoding | str | type) or any(not isinstance(each, Encoding) for each in encodings):
        raise PositionError(
            f"{name} asks for a list of encodings, such as super().__init__(dims, [Order()]); given is {encodings!r}"
        )
    for each in encodings:
        check_key(each)
        check_fields(each)


def _parts(models: Sequence[PositionModel]) -> Iterator[PositionModel]:
    """The models of a sum, and of the sums in it."""
    for model in models:
        if isinstance(model, Sum):
            yield from _parts(list(model._each()))
        else:
            yield model
