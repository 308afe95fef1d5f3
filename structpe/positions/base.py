"""A position model represents positions and defines where they enter: a row of the survey's Table 1.

It may act at four sites, and overrides the methods of those that it uses::

    prepare(positions)                once per batch: what all layers share (encoded paths, rows of a table)
    inputs(x, prepared)               before the first layer, on the units of the queries         (APE)
    layer(x, prepared, site)          before each layer, likewise                                 (recurring APE)
    sources(sources, prepared, site)  before the projections of each layer: the inputs of queries, keys and values
    terms(prepared, site)             inside the attention of each layer                          (MAM)

A model whose attention is not the one equation is a :class:`Block`, which has its own attention.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from torch import Tensor, nn

from structpe.encodings._guards import check_fields, check_key
from structpe.encodings.base import Encoding
from structpe.encodings.named import builder, check_sizes
from structpe.errors import PositionError
from structpe.plain.typed import Checked
from structpe.positions._batch import Positions
from structpe.positions._dims import Dims, check_dims
from structpe.positions._guards import guard
from structpe.positions._options import check_numbers
from structpe.positions._sites import SITES, Site, Sources
from structpe.positions._spec import NoSpec, Spec
from structpe.registry import Registry
from structpe.terms import Terms

if TYPE_CHECKING:
    from structpe.positions._sum import Sum

__all__ = ["MODELS", "PositionModel"]

MODELS: Registry[type[PositionModel]] = Registry("structpe.positions", "position model", PositionError)
"""Every position model by its name."""


def _inherits(model: type, name: str) -> bool:
    return getattr(model, name) is getattr(PositionModel, name)


class PositionModel(nn.Module, metaclass=Checked):
    """Represents positions. A subclass overrides the sites at which it acts; at the others it changes nothing.

    Args:
        dims: sizes of the Transformer.
        encodings: the encodings that it needs; a batch must hold them all.
        sizes: values of the symbols that its formula of parameters uses in addition to d, h, l and dh.

    Attributes:
        spec: its row of Table 1. Your own model can be built, trained and saved without one.
    """

    name: ClassVar[str]
    if TYPE_CHECKING:
        spec: ClassVar[Spec]
    else:
        spec = NoSpec()
    _options: dict[str, Any]

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Keep the options that the model is built with: done here, so that no subclass can forget one."""
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

    @classmethod
    def _bound(cls, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The arguments of the constructor, checked as plain data are."""
        whose = f"position model {cls.name!r}"
        sizes = [*given[:1], *(options[name] for name in ("dims",) if name in options)]
        if list(inspect.signature(cls.__init__).parameters)[1:2] == ["dims"] and sizes:
            check_dims(sizes[0], whose)
        found = builder(PositionError).bound(cls.__init__, given, options, whose)
        check_sizes(PositionError, whose, found.arguments)
        return found

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            MODELS.add(name, cls)
        if name or "name" not in dir(cls):
            cls.name = name or cls.__name__
        guard(cls, SITES, _inherits)

    def __init__(self, dims: Dims, encodings: Sequence[Encoding], **sizes: int) -> None:
        super().__init__()
        _check_built(type(self).__name__, dims, encodings)
        self.dims, self.encodings, self.sizes = dims, tuple(encodings), sizes

    def __add__(self, other: PositionModel) -> Sum:
        """Both at once."""
        from structpe.positions._sum import Sum  # a sum is itself a position model

        if not isinstance(other, PositionModel):
            return NotImplemented
        sums = [each if isinstance(each, Sum) else Sum(self.dims, [each]) for each in (self, other)]
        return Sum(self.dims, [part for each in sums for part in each], [own for each in sums for own in each.layers])

    def prepare(self, positions: Positions) -> Any:
        """What all sites of one forward pass share; each is given it. By default the positions themselves."""
        return positions

    def inputs(self, x: Tensor, prepared: Any) -> Tensor:
        """The units (b, n, d) as the first layer sees them."""
        del prepared
        return x

    def layer(self, x: Tensor, prepared: Any, site: Site) -> Tensor:
        """The hidden vectors (b, n, d) as the layer of this site sees them."""
        del prepared, site
        return x

    def sources(self, sources: Sources, prepared: Any, site: Site) -> Sources:
        """The vectors from which the layer of this site projects queries, keys and values."""
        del prepared, site
        return sources

    def terms(self, prepared: Any, site: Site) -> Terms:
        """What changes in the attention of the layer of this site."""
        del prepared, site
        return Terms()

    def forward(self, *given: Any, **named: Any) -> Any:
        """A position model acts at sites; there is nothing to call.

        Raises:
            PositionError: always.
        """
        raise PositionError(
            f"position model {self.name!r} is asked at its sites: prepared = model.prepare(structpe.encode(structures, "
            f"model.encodings)), then model.terms(prepared, structpe.Site(layer)), and model.inputs(x, prepared)"
        )

    @property
    def sites(self) -> frozenset[str]:
        """Those of ``inputs``, ``layer``, ``sources`` and ``terms`` at which it acts."""
        return frozenset(site for site in SITES if not _inherits(type(self), site))

    def replaces(self, layer: int) -> bool:
        """Whether it has its own attention, which replaces that of this layer: see :class:`Block`."""
        del layer
        return False

    @property
    def own_attention(self) -> bool:
        """Whether it has its own attention in one of the layers."""
        return any(map(self.replaces, range(self.dims.layers)))

    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        """See :meth:`Block.attend`; only a model with its own attention has it."""
        raise PositionError(f"position model {self.name!r} does not have its own attention; call its terms")

    @property
    def causal(self) -> bool:
        """Whether a decoder may use it: what it gives the first units does not change when more follow."""
        return all(encoding.causal for encoding in self.encodings)

    def options(self) -> dict[str, Any]:
        """Its options: ``type(model)(dims, **model.options())`` builds such a model again."""
        return dict(self._options)

    def claimed_params(self) -> int:
        """Number of parameters by the formula of the spec."""
        known = {"d": self.dims.width, "h": self.dims.heads, "l": self.dims.layers, "dh": self.dims.head}
        formula = self.spec.cells.params
        try:
            return int(eval(formula, {"__builtins__": {}}, known | self.sizes))  # our own formula
        except (NameError, SyntaxError, TypeError, ZeroDivisionError) as error:
            letters = ", ".join([*known, *self.sizes])
            raise PositionError(
                f"position model {self.name!r}: the formula of parameters {formula!r} cannot be evaluated ({error}); "
                f"it may use {letters}; give further letters as super().__init__(dims, encodings, LETTER=SIZE)"
            ) from error


def _check_built(name: str, dims: Any, encodings: Any) -> None:
    """Raise an error unless a model is built with sizes and a list of encodings."""
    check_dims(dims, name)
    if isinstance(encodings, Encoding | str | type) or any(not isinstance(each, Encoding) for each in encodings):
        raise PositionError(
            f"{name} takes a list of encodings, such as super().__init__(dims, [Order()]); given is {encodings!r}"
        )
    for each in encodings:
        check_key(each)
        check_fields(each)
