"""A position model represents positions and defines where they enter: a row of the survey's Table 1.

It may act at four sites, and overrides the methods of those that it uses::

    prepare(positions)                once per batch: what all layers share (encoded paths, rows of a table)
    inputs(x, prepared)               before the first layer, on the units of the queries         (APE)
    layer(x, prepared, site)          before each layer, likewise                                 (recurring APE)
    sources(sources, prepared, site)  before the projections of each layer: the inputs of queries, keys and values
    terms(prepared, site)             inside the attention of each layer                          (MAM)

A model whose attention is not the one equation is a :class:`Block`, which has its own attention.

Each method of a class is wrapped once, when the class is defined, so that a mistake in a user's own model raises a
clear error: the type of the result is checked, and its shape where that costs nothing. The cause of a failure is looked
for only after it. No values of tensors are read. What is computed of positions alone, by ``prepare`` and ``terms``, is
computed without autocast.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, isfunction
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding, builder, check_fields, check_hashable, check_largest
from structpe.errors import PositionError, listed
from structpe.plain.options import HEADS, LAYERS, WIDTH, Builder, Checked, signature_of
from structpe.positions.batch import Positions
from structpe.precision import exactly
from structpe.registry import Registry
from structpe.spec import Cells, Spec
from structpe.structure import Structure, check_structures
from structpe.terms import Terms

__all__ = [
    "MODELS",
    "SITES",
    "Cache",
    "Cells",
    "Dims",
    "NoSpec",
    "PositionModel",
    "Site",
    "Sources",
    "Spec",
    "Sum",
    "check_dims",
    "check_numbers",
    "guard",
    "spec_of",
]


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


class Cache(Protocol):
    """What a decoder keeps of the units of one layer, such as their keys and values."""

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append those of new units, (b, h, n, width) each, and return those of all units so far."""
        ...


@dataclass(frozen=True)
class Site:
    """Where a position model acts.

    Attributes:
        layer: number of the layer, from 0; one that the model was not built for is an error, also if all are the same.
        training: whether this is a training step, in which some models draw at random.
        cache: of the layer, for a model with its own attention in a decoder; None if there are no earlier units.
        dropout: probability that an attention weight is dropped, for a model with its own attention; 0 but in training.
    """

    layer: int
    training: bool = False
    cache: Cache | None = None
    dropout: float = 0.0


@dataclass(frozen=True, eq=False)
class Sources:
    """What an attention projects: the normalised hidden vectors three times, unless a position model changes them.

    Attributes:
        query: (b, n, d) of the units that attend.
        key: (b, c, d) of the units that are attended to; the last n of them are those of the queries. Any before them
            are of an earlier segment.
        value: (b, c, d) of the same units.
    """

    query: Tensor
    key: Tensor
    value: Tensor


SITES: dict[str, type] = {"inputs": Tensor, "layer": Tensor, "sources": Sources, "terms": Terms}
"""What a model returns at each site."""


def spec_of(model: type) -> Spec | None:
    """The row of Table 1 of a class; None if it has none yet."""
    found = inspect.getattr_static(model, "spec")
    return found if isinstance(found, Spec) else None


class NoSpec:
    """Placeholder for a missing ``Spec``: raises an error as soon as one is needed, but not before."""

    def __get__(self, model: object, cls: type) -> Spec:
        text = (
            f"{cls.__name__} has no Spec, its row of Table 1, which is needed here; add to the class: spec = "
            f"Spec(cite, structure, Cells(reference, injection, learnable, recurring, unbound, params))"
        )
        # Of a class an AttributeError too, which help() and others that go through all attributes expect.
        raise PositionError(text) if model is not None else _MissingSpec(text)


class _MissingSpec(PositionError, AttributeError):
    """A class without a row of Table 1."""


_LARGEST = 1e30
"""Float32 ends at 3.4e38, and numbers are squared and summed."""

_LARGEST_SIZE, _LARGEST_SEED = (1 << 31) - 1, (1 << 63) - 1
"""More rows, layers, ... no memory holds; PyTorch's seeds have 64 bits."""


def check_numbers(model: str, parameters: Mapping[str, Parameter], given: Mapping[str, Any]) -> None:
    """Check that numeric options are valid for every model.

    A whole number is a size: 1 or more, or 0 or more if 0 is the default, as of seeds. A real number is finite, and
    float32 can hold it; it is not negative unless its default is. ``base`` is above 1, as it is the factor by which the
    slowest wave is slower; ``dropout`` is a probability below 1.

    Args:
        model: name of the model.
        parameters: of its constructor.
        given: the options.

    Raises:
        PositionError: a number is none of these.
    """
    for option, value in given.items():
        if not isinstance(value, (int, float, tuple)) or isinstance(value, bool):
            continue
        default = parameters[option].default if option in parameters else None
        if problem := _problem(option, default, value):
            raise PositionError(f"option {option!r} of position model {model!r} is {value!r}; {problem}")


def _problem(option: str, default: Any, value: Any) -> str:
    """What must be given instead; nothing where all is well."""
    if isinstance(value, tuple):
        return next(filter(None, map(_of_real, _floats(value))), "")
    if isinstance(value, float):
        if problem := _of_real(value):
            return problem
    elif value > (most := _LARGEST_SEED if option == "seed" else _LARGEST_SIZE):
        return f"give {most} at most"
    if option == "base" and value <= 1:
        return "give a number above 1"
    if option == "dropout" and not 0 <= value < 1:
        return "give a probability: 0 or more, and below 1"
    known = isinstance(default, (int, float)) and not isinstance(default, bool)
    real = isinstance(default, float) or (default is None and isinstance(value, float))
    least = 0 if (known and default == 0) or real else 1
    if value < least and not (known and default < 0):
        return f"give {least} or more"
    return ""


def _of_real(value: float) -> str:
    if not math.isfinite(value):
        return "give a finite number"
    if value and not 1 / _LARGEST <= abs(value) <= _LARGEST:
        return f"its magnitude must be between {1 / _LARGEST:g} and {_LARGEST:g}, or 0"
    return ""


def _floats(values: tuple[Any, ...]) -> Iterator[float]:
    """Those of the items that are real numbers, inner ones too."""
    for each in values:
        if isinstance(each, tuple):
            yield from _floats(each)
        elif isinstance(each, float):
            yield each


SLIPS = (AttributeError, TypeError, ValueError, LookupError, RuntimeError)
"""What Python and PyTorch raise if a method is given an argument of the wrong kind."""
PREPARED = {"inputs": 1, "layer": 1, "sources": 1, "terms": 0}
"""The index of ``prepared`` among the arguments of each site."""


def guard(cls: type, kinds: Mapping[str, type], silent: Callable[[type, str], bool]) -> None:
    """Wrap the methods that a class itself defines.

    Args:
        cls: a subclass of ``PositionModel``.
        kinds: the type that each site must return.
        silent: whether a class inherits the default method of a name.
    """
    own = {name: method for name, method in vars(cls).items() if isfunction(method)}
    if "prepare" in own:
        setattr(cls, "prepare", _preparing(exactly(own["prepare"])))  # noqa: B010, mypy refuses the plain assignment
    for site, kind in kinds.items():
        if site in own:
            method = exactly(own[site]) if site == "terms" else own[site]
            setattr(cls, site, _asked(site, method, kind, silent))
    if "attend" in own:
        setattr(cls, "attend", _attending(own["attend"]))  # noqa: B010


def _not_begun(model: Any) -> str:
    name = type(model).__name__
    return (
        f"{name}.__init__ does not call super().__init__(dims, [encoding, ...]), which must come before anything else "
        f"is set; add it as its first line"
    )


def _preparing(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def prepare(self: Any, positions: Any) -> Any:
        try:
            return method(self, positions)
        except SLIPS as error:
            if isinstance(positions, Mapping):
                raise
            raise PositionError(_no_positions(self, "prepare", positions)) from error

    return prepare


def _attending(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def attend(self: Any, *given: Any, **named: Any) -> Any:
        _check_layer(self, named.get("site", given[2] if len(given) > 2 else None))
        return method(self, *given, **named)

    return attend


def _asked(
    site: str, method: Callable[..., Any], kind: type, silent: Callable[[type, str], bool]
) -> Callable[..., Any]:
    """The wrapped method of a site; inputs and layer must return the shape of x, their first argument."""
    shaped = kind is Tensor

    @wraps(method)
    def answered(self: Any, *given: Any, **named: Any) -> Any:
        prepared = given[PREPARED[site]] if len(given) > PREPARED[site] else named.get("prepared")
        if shaped and given and not torch.compiler.is_compiling():
            _check_width(self, site, given[0])
        place = named.get("site", given[-1] if given and site != "inputs" else None)
        _check_layer(self, place)
        try:
            got: Any = method(self, *given, **named)
        except SLIPS as error:
            if isinstance(place, int):
                raise PositionError(_no_site(self, site, place)) from error
            if reason := _why(self, site, prepared, error, silent(type(self), "prepare")):
                raise PositionError(reason) from error
            raise
        except PositionError as error:
            refused = str(error).startswith("Terms(")  # by the terms: they were given positions, or parts of these
            if refused and isinstance(prepared, Positions) and not silent(type(self), "prepare"):
                raise PositionError(_unprepared(self, site)) from error
            raise
        if not issubclass(type(got), kind):
            handed_on = isinstance(got, Positions) and not silent(type(self), "prepare")
            raise PositionError(_unprepared(self, site) if handed_on else _other_kind(self, site, got, kind))
        if shaped and given and not torch.compiler.is_compiling() and got.shape != given[0].shape:
            raise PositionError(
                f"position model {self.name!r}: {site} gives shape {tuple(got.shape)}; it must be that of the units, "
                f"(b, n, d) = {tuple(given[0].shape)}"
            )
        return got

    return answered


def _why(model: Any, site: str, prepared: Any, error: Exception, plain: bool) -> str:
    """Why a site failed, if that is known."""
    name = model.name
    if not plain and isinstance(prepared, Positions):
        return _unprepared(model, site)
    if (plain and not isinstance(prepared, Mapping)) or isinstance(prepared, Structure):
        return _no_positions(model, site, prepared)
    if prepared is None:
        return f"position model {name!r}: its prepare gives None, so that {site} has nothing to read; return something"
    if isinstance(error, IndexError):
        reason = " ".join(str(error).split())
        return (
            f"position model {name!r}: {site} looks up a row that is not there ({reason}); rows of a table are "
            f"whole numbers from 0 to its length - 1: clamp what the encoding gives, or make the table longer"
        )
    return ""


def _check_width(model: Any, site: str, x: Any) -> None:
    """Check the width of the vectors that a site is given."""
    if isinstance(x, Tensor) and x.ndim and x.shape[-1] != model.dims.width:
        raise PositionError(
            f"position model {model.name!r}: {site} takes vectors (b, n, {model.dims.width}), and was given shape "
            f"{tuple(x.shape)}"
        )


def _check_layer(model: Any, site: Any) -> None:
    """Check that the model was built for the layer of a site, also if all its layers are the same."""
    if isinstance(site, Site) and not 0 <= site.layer < model.dims.layers:
        count = model.dims.layers
        raise PositionError(
            f"position model {model.name!r}: this model was built for {count} layers, 0..{count - 1}; there is no "
            f"layer {site.layer}: give one of these, or build it for more, Dims(width, heads, layers)"
        )


def _unprepared(model: Any, site: str) -> str:
    return (
        f"position model {model.name!r}: {site} was given positions, and takes what prepare makes of them, once per "
        f"batch: prepared = model.prepare(positions), then model.{site}({'x, ' * (site != 'terms')}prepared, ...)"
    )


def _no_site(model: Any, site: str, given: int) -> str:
    return f"position model {model.name!r}: {site} takes a Site, Site(layer={given}) say; given is {given!r}"


def _no_positions(model: Any, site: str, given: Any) -> str:
    return (
        f"position model {model.name!r}: {site} takes positions, and was given {type(given).__name__}; encode first: "
        f"model.prepare(structpe.encode([structure], model.encodings))"
    )


def _other_kind(model: Any, site: str, got: Any, kind: type) -> str:
    what = {"Tensor": "a tensor (b, n, d)", "Terms": "Terms(...), Terms() for none"}.get(kind.__name__, kind.__name__)
    given = "None" if got is None else f"{type(got).__name__}"
    lost = "; is there a return missing?" if got is None else ""
    return f"position model {model.name!r}: {site} gives {given}, and must give {what}{lost}"


MODELS: Registry[type[PositionModel]] = Registry("structpe.positions", "position model", PositionError)
"""Every position model by its name."""


def _inherits(model: type, name: str) -> bool:
    return getattr(model, name) is getattr(PositionModel, name)


class _Model(Checked):
    """The class of position models: their arguments are checked, and whether a constructor calls that of its base."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        """Check the arguments, and make a model."""
        found = cls._bound(given, named)  # type: ignore[attr-defined]
        kind: Any = cls
        model = kind.__new__(kind, *found.args, **found.kwargs)
        try:
            kind.__init__(model, *found.args, **found.kwargs)
        except AttributeError as error:
            if "dims" in vars(model):
                raise
            raise PositionError(_not_begun(model)) from error
        if "dims" not in vars(model):
            raise PositionError(_not_begun(model))
        return model


class PositionModel(nn.Module, metaclass=_Model):
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
        signature = signature_of(cls.__init__)
        bound = signature.bind_partial(*given, **named)
        bound.apply_defaults()
        options = {k: v for k, v in bound.arguments.items() if k != "dims"}
        for free in [k for k in options if signature.parameters[k].kind is inspect.Parameter.VAR_KEYWORD]:
            options |= options.pop(free)
        check_numbers(getattr(cls, "name", cls.__name__), signature.parameters, options)
        self.__dict__["_options"] = options
        return self

    @classmethod
    def _bound(cls, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The arguments of the constructor, checked as plain data are."""
        whose = f"position model {cls.name!r}"
        if next(iter(signature_of(cls.__init__).parameters), "") == "dims" and (given or "dims" in options):
            check_dims(given[0] if given else options["dims"], whose)
        found = builder(PositionError).bound(cls.__init__, given, options, whose)
        check_largest(PositionError, whose, found.arguments)
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

    def fit(self, structures: Sequence[Structure]) -> PositionModel:
        """Such a model whose encodings know a vocabulary of training structures, such as the labels of their edges.

        Its parameters are drawn anew, since its tables have a row for each label; so fit it before it is trained, or
        part of a Transformer. A model whose encodings have no vocabulary is returned as it is.

        Raises:
            EncodingError: ``structures`` is not a list of structures.
        """
        check_structures(structures, "fit")
        return self._fit(structures) if self.learns else self

    @property
    def learns(self) -> bool:
        """Whether :meth:`fit` asks its encodings to learn from structures."""
        return any(type(each).fit is not Encoding.fit for each in self.encodings)

    def _fit(self, structures: Sequence[Structure]) -> PositionModel:
        return type(self)(self.dims, **{name: _fit(value, structures) for name, value in self.options().items()})

    def extra_repr(self) -> str:
        """Its sizes and options, for ``repr``; a long value, such as all labels of a corpus, is cut."""
        return listed([self.dims, *(f"{name}={value!r}" for name, value in self.options().items())], most=99)

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


def _fit(option: Any, structures: Sequence[Structure]) -> Any:
    """An option, fitted if it is an encoding or holds some."""
    if isinstance(option, tuple):
        return tuple(_fit(each, structures) for each in option)
    return option.fit(structures) if isinstance(option, Encoding) else option


def _check_built(name: str, dims: Any, encodings: Any) -> None:
    """Raise an error unless a model is built with sizes and a list of encodings."""
    check_dims(dims, name)
    if isinstance(encodings, Encoding | str | type) or any(not isinstance(each, Encoding) for each in encodings):
        raise PositionError(
            f"{name} takes a list of encodings, such as super().__init__(dims, [Order()]); given is {encodings!r}"
        )
    for each in encodings:
        check_hashable(each)
        check_fields(each)


class Sum(PositionModel):
    """Several position models at once: each acts on the inputs in turn, and their terms are added.

    A summand may act in some layers only, so that a sum is also a schedule of position models: rotary positions in
    three layers of four, say. It is then built for a Transformer of so many layers, the first of which is the first of
    these. What it does at the input, before all layers, it does in any case.

    Args:
        dims: sizes of the Transformer.
        models: the summands; an empty list means no position information.
        layers: for each summand the layers in which it acts, None for all; by default all of them in all layers.

    Raises:
        PositionError: one was built for other sizes; layers do not exist, or one acts at the input only; in one layer,
            two of them have their own attention, or one has and another changes what is projected.
    """

    def __init__(
        self,
        dims: Dims,
        models: Sequence[PositionModel],
        layers: Sequence[Sequence[int] | None] | None = None,
    ) -> None:
        super().__init__(dims, tuple(dict.fromkeys(e for model in models for e in model.encodings)))
        self.models = nn.ModuleList(models)
        given = repeat(None, len(models)) if layers is None else layers
        self.layers = tuple(None if each is None else tuple(each) for each in given)
        for model, own in zip(models, self.layers, strict=True):
            _check_layers(model, own, dims)
        for layer in range(dims.layers):
            _check_attention(list(_parts(self, layer)))

    def extra_repr(self) -> str:
        """Its sizes, and the layers in which each part acts, if they are not all layers."""
        return str(self.dims) if not any(self.layers) else f"{self.dims}, in_layers={list(self.layers)}"

    def prepare(self, positions: Positions) -> list[Any]:
        return [model.prepare(positions) for model in self]

    def inputs(self, x: Tensor, prepared: list[Any]) -> Tensor:
        for model, mine in self._pairs(prepared):
            x = model.inputs(x, mine)
        return x

    def layer(self, x: Tensor, prepared: list[Any], site: Site) -> Tensor:
        for model, mine, own in self._at(prepared, site):
            x = model.layer(x, mine, own)
        return x

    def sources(self, sources: Sources, prepared: list[Any], site: Site) -> Sources:
        for model, mine, own in self._at(prepared, site):
            sources = model.sources(sources, mine, own)
        return sources

    def terms(self, prepared: list[Any], site: Site) -> Terms:
        return sum((model.terms(mine, own) for model, mine, own in self._at(prepared, site)), Terms())

    @property
    def sites(self) -> frozenset[str]:
        """Those at which one of the summands acts."""
        return frozenset().union(*(model.sites for model in self))

    def replaces(self, layer: int) -> bool:
        """Whether a summand has its own attention in this layer."""
        return any(model.replaces(own) for model, own in self.acting(layer))

    def attend(self, x: Tensor, prepared: list[Any], site: Site, terms: Terms) -> tuple[Tensor, list[Any]]:
        which, block, own = next(
            (i, model, own)
            for i, (model, layers) in enumerate(zip(self, self.layers, strict=True))
            if (own := _own(site.layer, layers)) is not None and model.replaces(own)
        )
        out, mine = block.attend(x, prepared[which], replace(site, layer=own), terms)
        return out, [*prepared[:which], mine, *prepared[which + 1 :]]

    @property
    def causal(self) -> bool:
        """Whether a decoder may use all of the summands."""
        return all(model.causal for model in self)

    def claimed_params(self) -> int:
        """The formulas of the summands, added."""
        return sum(model.claimed_params() for model in self)

    def _fit(self, structures: Sequence[Structure]) -> Sum:
        return Sum(self.dims, [each._fit(structures) for each in self], self.layers)

    def acting(self, layer: int) -> Iterator[tuple[PositionModel, int]]:
        """The summands that act in a layer, and the number that this layer has for each."""
        for model, layers in zip(self, self.layers, strict=True):
            if (own := _own(layer, layers)) is not None:
                yield model, own

    def _at(self, prepared: list[Any], site: Site) -> Iterator[tuple[PositionModel, Any, Site]]:
        """The summands that act in the layer of a site, what each prepared, and the site as each knows it."""
        for (model, mine), layers in zip(self._pairs(prepared), self.layers, strict=True):
            if (own := _own(site.layer, layers)) is not None:
                yield model, mine, replace(site, layer=own)

    def _pairs(self, prepared: list[Any]) -> Iterator[tuple[PositionModel, Any]]:
        """Each summand, and what it prepared."""
        if not isinstance(prepared, list):
            raise PositionError(
                f"a sum of position models takes the list that its prepare returns; given is "
                f"{type(prepared).__name__}; call prepared = model.prepare(structpe.encode(structures, "
                f"model.encodings))"
            )
        return zip(self, prepared, strict=True)

    def __iter__(self) -> Iterator[PositionModel]:
        """The summands."""
        for model in self.models:
            assert isinstance(model, PositionModel)
            yield model


def _own(layer: int, layers: tuple[int, ...] | None) -> int | None:
    """The number of a layer among those in which a model acts; None if it does not act there."""
    if layers is None:
        return layer
    return layers.index(layer) if layer in layers else None


def _parts(model: PositionModel, layer: int) -> Iterator[tuple[PositionModel, int]]:
    """The models that act in a layer, those of sums in a sum too."""
    if isinstance(model, Sum):
        for each, own in model.acting(layer):
            yield from _parts(each, own)
    else:
        yield model, layer


def _check_layers(model: PositionModel, layers: tuple[int, ...] | None, dims: Dims) -> None:
    if layers is not None:
        if not layers or list(layers) != sorted({layer for layer in layers if 0 <= layer < dims.layers}):
            raise PositionError(
                f"position model {model.name!r} is to act in layers {list(layers)}; give some of 0 to "
                f"{dims.layers - 1}, each once and in order"
            )
        if model.sites <= {"inputs"} and model.sites:
            raise PositionError(
                f"position model {model.name!r} acts at the input only, before all layers; leave in_layers out"
            )
        dims = replace(dims, layers=len(layers))
    if model.dims != dims:
        raise PositionError(
            f"{model.name} was built for {model.dims}, the sum is for {dims}; build both for one Transformer"
        )


def _check_attention(parts: list[tuple[PositionModel, int]]) -> None:
    """Check what acts in one layer: each model, and the number that the layer has for it."""
    if len(blocks := [model.name for model, own in parts if model.replaces(own)]) > 1:
        raise PositionError(f"{' and '.join(blocks)} have their own attention; only one model of a sum may")
    if blocks and (lost := [model.name for model, _ in parts if "sources" in model.sites]):
        raise PositionError(
            f"{blocks[0]} has its own attention, which ignores what {' and '.join(lost)} would change in queries "
            f"and keys; leave one of them out"
        )
