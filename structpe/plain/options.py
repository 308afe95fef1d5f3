"""Options and configurations: from plain data to typed objects, bounds on sizes, and options without effect.

msgspec converts strictly: ``"3"`` is not a number and ``true`` is not a whole number; a whole number is accepted as a
float, and a list as a tuple. This module adds what msgspec leaves out: unknown and missing keys are errors, and every
error names the key, its type and the given value.

Bounds are generous for any work, and small enough to catch a slip at once. Sizes that are compared with the data, such
as the number of examples, need none.
"""

from __future__ import annotations

import inspect
import math
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache, lru_cache, reduce
from itertools import repeat
from numbers import Number
from operator import or_
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from structpe.computed import computed
from structpe.errors import ConfigError, StructPEError
from structpe.registry import unknown

__all__ = [
    "BATCH",
    "BEAM",
    "HEADS",
    "LAYERS",
    "OPTION",
    "PARAMETERS",
    "PROCESSES",
    "RUNS",
    "STEPS",
    "UNITS",
    "VOCABULARY",
    "WIDTH",
    "Builder",
    "Checked",
    "Inert",
    "bounded",
    "check_shares",
    "few_parameters",
    "hints_of",
    "options_of",
    "recorded",
    "refuse_inert",
    "signature_of",
]


STEPS = 10**9
"""Steps of training, and numbers of steps."""
BATCH = 10**6
"""Examples of a batch, batches of a step."""
WIDTH = 1 << 16
"""Of hidden vectors; feed-forward parts may be four times as wide."""
HEADS = 1 << 12
LAYERS = 1 << 12
PARAMETERS = 10**11
"""Of all layers together, 400 GB in single precision."""
VOCABULARY = 1 << 20
"""Subword units."""
UNITS = 1 << 24
"""Of a structure, or a text."""
BEAM = 1 << 12
"""Texts that a search keeps."""
PROCESSES = 1 << 10
"""Processes, devices and threads."""
RUNS = 100_000
"""Of one study."""
OPTION = 1 << 24
"""Any integer option of an encoding or a position model, except seeds."""


def bounded(config: Any, where: str = "", **limits: tuple[float, float]) -> None:
    """Check that numbers of a configuration are finite and in a range.

    Args:
        config: the configuration.
        where: prefix of the names in errors.
        limits: the least and the largest value of each attribute.

    Raises:
        ConfigError: one is smaller or larger, or not finite.
    """
    for name, (least, largest) in limits.items():
        value = getattr(config, name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{where}{name} is {value}; it must be a finite number")
        if value < least:
            raise ConfigError(f"{where}{name} is {value}; it must be {least} or more")
        if value > largest:
            given = f"{value}" if value < 10**20 else "a number of more than 20 digits"
            raise ConfigError(f"{where}{name} is {given}; at most {largest} is allowed, give a smaller number")


def check_shares(config: Any, where: str = "", *names: str) -> None:
    """Check attributes of a configuration that are at least 0 and below 1, such as probabilities; None is allowed.

    Raises:
        ConfigError: one is out of range.
    """
    for name in names:
        if (value := getattr(config, name)) is not None and not 0 <= value < 1:
            raise ConfigError(f"{where}{name} is {value}; it must be 0 or more and below 1")


def few_parameters(width: int, feedforward: int, layers: int) -> None:
    """Check that layers of these sizes fit into some machine.

    Raises:
        ConfigError: they have more parameters than :data:`PARAMETERS`.
    """
    count = layers * width * (4 * width + 2 * feedforward)
    if count > PARAMETERS:
        sizes = f"{layers} layers of width {width}, feed-forward parts of width {feedforward}"
        raise ConfigError(f"{sizes} have {count} parameters; at most {PARAMETERS} are allowed, make the model smaller")


T = TypeVar("T")

WRONG = msgspec.ValidationError, UnicodeEncodeError
"""The errors of msgspec for a value; the second is for a text with half of a character in place of a number."""
LONGEST = 200
"""Characters of a value that an error shows."""
WORDS = {
    Any: "any value",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "null",
}
PLURAL = {int: "whole numbers", float: "numbers", str: "texts"}


@dataclass(frozen=True)
class Builder:
    """Builds dataclasses and call arguments from plain data.

    Args:
        error: class of the errors it raises.
        named: a class whose instances are described by a name with options, and not by their fields.
        find: ``(subclass of named, value, key)`` -> the instance that the value describes.
    """

    error: type[StructPEError] = ConfigError
    named: type | None = None
    find: Callable[[type, Any, str], Any] | None = None

    def build(self, cls: type[T], data: Any, whole: str = "the configuration") -> T:
        """Build a dataclass, and the dataclasses in it, from mappings.

        Args:
            cls: the dataclass.
            data: its keys and values.
            whole: name of the data in errors.

        Raises:
            StructPEError: of class ``error``; a key is unknown or missing, or a value has the wrong type.
        """
        self.check_keys(cls, data)
        built: T = self._convert(cls, data, "", lambda path: path or whole)
        return built

    def check_keys(self, hint: Any, data: Any, path: str = "", complete: bool = True) -> None:
        """Check the keys that :meth:`build` would read, but no value.

        Args:
            hint: the dataclass.
            data: its keys and values.
            path: dotted key of the data.
            complete: whether a missing key is an error.

        Raises:
            StructPEError: of class ``error``; a key is unknown or missing.
        """
        if is_dataclass(hint) and isinstance(data, Mapping):
            cls: Any = hint
            hints = {_dotted(path, name): each for name, each in _fields_of(cls).items()}
            for key in data:
                if _dotted(path, key) not in hints:
                    groups = [(at, each) for at in hints for each in _members(hints[at]) if is_dataclass(each)]
                    inside = [_dotted(at, each.name) for at, group in groups for each in fields(group)]
                    raise self.error(unknown("key", _dotted(path, key), list(hints), inside))
            for field in fields(hint) if complete else ():
                if field.name not in data and field.default is MISSING and field.default_factory is MISSING:
                    key = _dotted(path, field.name)
                    self.check_keys(hints[key], {}, key)
                    raise self.error(f"the key {key!r} is missing; it takes {_words(hints[key])}")
        for key, inner, value in _parts(hint, data, path):
            self.check_keys(inner, value, key, complete)

    def arguments(
        self, call: Callable[..., Any], given: Mapping[str, Any], whose: str, skip: int = 1
    ) -> dict[str, Any]:
        """Build the arguments of a call from options.

        An option without a type hint takes any value. ``**name: type`` takes options of any name. Numbers of NumPy
        become Python's.

        Args:
            call: the function.
            given: options by name.
            whose: owner of the options in errors, such as ``reader 'amr'``.
            skip: how many parameters come before the options.

        Raises:
            StructPEError: of class ``error``; an option is unknown or missing, or a value has the wrong type.
        """
        self.check_options(call, given, whose, skip)
        form, known = _form_of(call), options_of(call, skip)
        return {
            option: self._convert(
                form.hints.get(option, Any) if option in known else form.others,
                _of_python(value),
                option,
                lambda path: f"option {path!r} of {whose}",
            )
            for option, value in given.items()
        }

    def check_options(self, call: Callable[..., Any], given: Mapping[str, Any], whose: str, skip: int = 1) -> None:
        """Check the names of the options of a call, as :meth:`arguments` does, but no value.

        Raises:
            StructPEError: of class ``error``; an option is unknown or missing.
        """
        form = _form_of(call)
        known = [name for name in list(form.parameters)[skip:] if name not in form.free]
        if given and form.others is Any:
            self.check_names(known, given, whose)
        for option in known:
            if option not in given and form.parameters[option].default is inspect.Parameter.empty:
                takes = _words(form.hints.get(option, Any))
                raise self.error(f"{whose} needs the option {option!r}; it takes {takes}")

    def bound(self, call: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any], whose: str) -> Any:
        """The arguments of a call of Python, with the checks of :meth:`arguments`.

        A hint that plain data cannot be checked by, such as a function, takes any value.

        Args:
            call: a function whose first parameter is the object itself.
            given, named: arguments, without the object.
            whose: owner of the arguments in errors.

        Returns:
            An ``inspect.BoundArguments``, without defaults.

        Raises:
            StructPEError: of class ``error``; as of :meth:`arguments`, or there are more arguments than parameters.
        """
        form = _form_of(call)
        try:
            found = form.signature.bind(*given, **named)
        except TypeError as error:
            self.check_names(list(form.signature.parameters), named, whose)
            takes = ", ".join(form.signature.parameters) or "none"
            raise self.error(f"{whose}: {error}; arguments: {takes}") from None

        def of_hint(hint: Any, name: str, value: Any) -> Any:
            return self._convert(hint, _of_python(value), name, lambda path: f"option {path!r} of {whose}")

        for name, value in found.arguments.items():
            if type(value) is form.checkable.get(name):  # msgspec is not asked where all is well
                continue
            if name in form.checkable:
                found.arguments[name] = of_hint(form.checkable[name], name, value)
            elif name == form.keywords and form.others is not Any:
                found.arguments[name] = {each: of_hint(form.others, each, value[each]) for each in value}
        return found

    def check_names(self, known: Sequence[str], given: Iterable[str], whose: str) -> None:
        """Check the names of options, but no value.

        Args:
            known: names of all options.
            given: names of those that are given.
            whose: owner of the options in errors.

        Raises:
            StructPEError: of class ``error``; an option is unknown.
        """
        for option in given:
            if option not in known:
                if not known:
                    raise self.error(f"{whose} has no option {option!r}, nor any other; leave it out")
                raise self.error(unknown("option", option, list(known)).replace("there is", f"{whose} has", 1))

    def _convert(self, hint: Any, data: Any, path: str, say: Callable[[str], str]) -> Any:
        hint = self._opaque(hint)

        def find(kind: Any, value: Any) -> Any:
            if self.find is None or not isinstance(kind, _StandIn):
                return value  # msgspec checks that it is an instance
            return self.find(kind.stands_for, value, say(path))

        def fails(kind: Any, value: Any) -> str:
            try:
                msgspec.convert(value, kind, dec_hook=find)
            except WRONG as error:
                return str(error)
            return ""

        try:
            return msgspec.convert(data, hint, dec_hook=find)
        except TypeError as error:
            raise self.error(f"{say(path)} has a type hint that plain data cannot be checked by: {error}") from None
        except WRONG as error:
            reason = str(error)
        while wrong := next((part for part in _parts(hint, data, path) if fails(*part[1:])), None):
            path, hint, data = wrong
            reason = fails(hint, data)
        if is_dataclass(hint) and isinstance(data, Mapping):
            raise self.error(f"{say(path)}: {reason}")
        raise self.error(f"{say(path)} takes {_words(hint)}; given is {_shown(data)}")

    def _opaque(self, hint: Any) -> Any:
        """The hint with stand-ins for the classes that ``find`` finds: msgspec would fill in their fields."""
        if self.named is not None and isinstance(hint, type) and issubclass(hint, self.named):
            return _stand_in(hint)  # type: ignore[arg-type]  # classes are hashable
        origin, inner = get_origin(hint), get_args(hint)
        if origin in (None, Literal):
            return hint
        changed = tuple(self._opaque(each) for each in inner)
        return reduce(or_, changed) if origin is UnionType else origin[changed]


class _StandIn(ABCMeta):
    """Class of an abstract class that has another class, a dataclass say, as virtual subclass."""

    stands_for: type


@cache
def _stand_in(cls: type) -> _StandIn:
    made = _StandIn(cls.__name__, (), {"stands_for": cls})
    made.register(cls)
    return made


class _Form:
    """The parameters of a function.

    Attributes:
        parameters: by name.
        signature: of those after the first one.
        free: names of ``*args`` and ``**kwargs``.
        hints: type hints, without those with a name that only a type checker imports.
        keywords: the name of ``**kwargs``; empty if there are none.
        others: their hint.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        whole = inspect.signature(call)
        each = list(whole.parameters.values())
        self.parameters = dict(whole.parameters)
        self.signature = whole.replace(parameters=each[1:])
        self.free = {one.name for one in each if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}
        self.hints = _hints_of(call)
        self.keywords = next((one.name for one in each if one.kind is one.VAR_KEYWORD), "")
        self.others = self.hints.get(self.keywords, Any)

    @computed
    def checkable(self) -> dict[str, Any]:
        """The hints of the parameters after the first one that plain data can be checked by."""
        own = [name for name in self.signature.parameters if name in self.hints and name not in self.free]
        return {name: self.hints[name] for name in own if _is_checkable(self.hints[name])}


@lru_cache(maxsize=4096)
def _form_of(call: Callable[..., Any]) -> _Form:
    return _Form(call)


def options_of(call: Callable[..., Any], skip: int = 1) -> list[str]:
    """Names of the options of a function, which come after its first parameters."""
    form = _form_of(call)
    return [name for name in list(form.parameters)[skip:] if name not in form.free]


def hints_of(call: Callable[..., Any]) -> dict[str, Any]:
    """Type hints of a function, without those with a name that only a type checker imports."""
    return _form_of(call).hints


@lru_cache(maxsize=4096)
def signature_of(call: Callable[..., Any]) -> inspect.Signature:
    """The parameters of a function after the first one."""
    return _form_of(call).signature


@lru_cache(maxsize=1024)
def _fields_of(cls: Any) -> dict[str, Any]:
    """The types of the fields of a dataclass; to evaluate its annotations takes longer than to build it."""
    return get_type_hints(cls)


def _hints_of(call: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(call)
    except NameError:
        own = inspect.unwrap(call)
    found: dict[str, Any] = {}
    for name, hint in own.__annotations__.items():
        with suppress(NameError):
            found |= get_type_hints(SimpleNamespace(__annotations__={name: hint}), vars(sys.modules[own.__module__]))
    return found


class Checked(ABCMeta):
    """Metaclass of classes whose constructors check their arguments like plain data.

    Such a class implements ``_bound(given, named)`` with a :class:`Builder`.
    """

    def __call__(cls, *given: Any, **named: Any) -> Any:
        """Check the arguments, and make an instance."""
        found = cls._bound(given, named)  # type: ignore[attr-defined]
        return super().__call__(*found.args, **found.kwargs)

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature of the constructor, for ``help``, editors and pages, which would show the metaclass's."""
        return signature_of(cls.__init__)  # type: ignore[misc]


def _is_checkable(hint: Any) -> bool:
    try:
        msgspec.convert(object(), hint, dec_hook=lambda _, value: value)
    except msgspec.ValidationError:
        return True
    except TypeError:
        return False
    return True


def _of_python(value: Any) -> Any:
    """Convert numbers of NumPy, also in lists and tuples, to Python's."""
    if type(value) in (list, tuple):
        return type(value)(map(_of_python, value))
    number = isinstance(value, Number) or type(value).__name__ in ("bool", "bool_")
    return value.item() if number and type(value).__module__ == "numpy" else value


def _dotted(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _parts(hint: Any, data: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Path, hint and value of each part of a value."""
    for each in _members(hint):
        origin, inner = get_origin(each), get_args(each)
        if isinstance(data, Mapping) and (is_dataclass(each) or origin in (dict, Mapping)):
            cls: Any = each
            hints = _fields_of(cls) if is_dataclass(each) else dict.fromkeys(data, inner[-1])
            yield from ((_dotted(path, key), hints[key], data[key]) for key in data if key in hints)
        elif isinstance(data, (list, tuple)) and origin in (list, tuple, Sequence):
            hints_in_order = inner if _length(each) else repeat(inner[0])
            for number, (kind, value) in enumerate(zip(hints_in_order, data, strict=False)):
                yield f"{path}[{number}]", kind, value


def _length(hint: Any) -> int:
    """Length of a tuple of fixed length; 0 of other types."""
    inner = get_args(hint)
    return len(inner) if get_origin(hint) is tuple and inner[-1] is not Ellipsis else 0


def _words(hint: Any) -> str:
    """A type in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return f"{'one of ' if inner[1:] else ''}{', '.join(map(repr, inner))}"
    if len(members := _members(hint)) > 1:
        return " or ".join(map(_words, members))
    if origin in (list, tuple, Sequence):
        count = f"{_length(hint)} " if _length(hint) else ""
        return f"a list of {count}{PLURAL[inner[0]]}" if inner[0] in PLURAL else "a list"
    if is_dataclass(hint) or origin in (dict, Mapping):
        return "a mapping"
    return WORDS.get(hint) or str(getattr(hint, "__name__", hint))


def _shown(data: Any) -> str:
    text = "null" if data is None else repr(data)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _always(config: Any) -> bool:
    """The default condition."""
    return True


@dataclass(frozen=True)
class Inert:
    """Fields of a configuration that have no effect under a condition.

    A configuration lists its own as the class attribute ``inert``; those of its bases hold too.

    Args:
        fields: their names; ``attention.kernel`` is a field of the group ``attention``.
        why: the condition in words, such as ``attention is null``.
        when: whether it holds for a configuration.
    """

    fields: tuple[str, ...]
    why: str
    when: Callable[[Any], bool] = _always


_ASKED: ContextVar[bool] = ContextVar("_ASKED", default=True)


@contextmanager
def recorded() -> Iterator[None]:
    """A context without this check, for configurations that a run has recorded: nobody can change them any more."""
    before = _ASKED.set(False)
    try:
        yield
    finally:
        _ASKED.reset(before)


def refuse_inert(config: Any, prefix: str = "", also: Iterable[Inert] = ()) -> None:
    """Check that a configuration sets no field that has no effect; such fields must have their defaults.

    Args:
        config: a dataclass.
        prefix: of its keys in errors, such as ``training.``.
        also: further fields, whose condition is known to the caller only, instead of those of the class.

    Raises:
        ConfigError: such a field has another value than its default; the error says which setting makes it inert.
    """
    if not _ASKED.get():
        return
    rules = also or [rule for cls in type(config).__mro__ for rule in vars(cls).get("inert", ())]
    defaults = {each.name: _default(each) for each in fields(config)}
    for rule in rules:
        for name in rule.fields:
            first, *rest = name.split(".")
            value, default = (reduce(getattr, rest, each) for each in (getattr(config, first), defaults[first]))
            if value != default and rule.when(config):
                wrong = f"{prefix}{name} is {value!r}, which has no effect, as {rule.why}"
                raise ConfigError(f"{wrong}; leave {prefix}{name} out, or change that")


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
