"""YAML, read event by event, since PyYAML's own loaders recurse, multiply aliases and construct objects of tags."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from structpe.errors import ConfigError

if TYPE_CHECKING:
    from yaml.constructor import SafeConstructor
    from yaml.events import Event, ScalarEvent
    from yaml.resolver import Resolver

__all__ = ["DEEPEST", "LONGEST", "MOST", "from_yaml", "to_yaml"]

LONGEST = 1 << 20
"""Characters of a YAML text."""
MOST = 100_000
"""Values of a YAML text; those of an alias count again."""
DEEPEST = 100
"""Lists and mappings within one another."""
LONGEST_NUMBER = 400
"""Characters of a number."""
WIDEST = 1 << 63
"""All integers are smaller."""
UNNAMEABLE = re.compile("[\0\ud800-\udfff]")
"""Characters that neither a file name nor a text in UTF-8 can contain."""
MERGE = "<<"
FLOAT = "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?|\.\d)\d*[eE][-+]?\d+$"), list("-+.0123456789")
"""``1e-3``: a number in YAML 1.2, but a text in YAML 1.1, which PyYAML follows."""


def from_yaml(text: str, what: str = "the text") -> Any:
    """Read a YAML text.

    Args:
        text: one document, or nothing, which is null.
        what: name of the text in errors.

    Raises:
        ConfigError: it is not YAML, a key is given twice or is not text, a value is not plain, or a bound is exceeded;
            with line and column.
    """
    import yaml

    if len(text) > LONGEST:
        raise ConfigError(f"{what} has {len(text)} characters, {LONGEST} are allowed; is it the right one?")
    if found := yaml.reader.Reader.NON_PRINTABLE.search(text):
        problem = f"the character U+{ord(found[0]):04X} may not be in it"
        line, column = text.count("\n", 0, found.start()), found.start() - text.rfind("\n", 0, found.start()) - 1
        raise _Wrong(problem, line, column, syntax=True).of(what)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the parser in C is not in every build of PyYAML
    building = _Building(_with_floats(yaml.resolver.Resolver)(), yaml.constructor.SafeConstructor())
    try:
        for event in yaml.parse(text, Loader=loader):
            building.take(event)
    except _Wrong as wrong:
        raise wrong.of(what) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = (mark.line, mark.column) if mark is not None else (0, 0)
        raise _Wrong(str(error.problem or error.context), *where, syntax=True).of(what) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{what} is not YAML: {' '.join(str(error).split())[:200]}") from None
    return building.whole


def to_yaml(data: Any) -> str:
    """Write plain data as a YAML text, the inverse of :func:`from_yaml`."""
    import yaml

    dumper = _with_floats(yaml.SafeDumper)
    return str(yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True))


def _with_floats(cls: Any) -> Any:
    """A class of PyYAML that also knows :data:`FLOAT`."""
    extended: Any = type(cls.__name__, (cls,), {})
    extended.add_implicit_resolver(*FLOAT)
    return extended


class _Wrong(Exception):
    """A problem of a YAML text.

    Args:
        problem: the problem.
        line, column: its place, from 0.
        syntax: whether the text is not YAML at all.
    """

    def __init__(self, problem: str, line: int, column: int, syntax: bool = False) -> None:
        super().__init__(problem)
        self.problem, self.place, self.syntax = problem, f"line {line + 1}, column {column + 1}", syntax

    def of(self, what: str) -> ConfigError:
        """The error for a user."""
        if self.syntax:
            return ConfigError(f"{what} is not YAML: {self.problem} ({self.place})")
        return ConfigError(f"{self.place}: {self.problem}")


@dataclass
class _Open:
    """A list or mapping that has not ended; ``merged`` are the mappings of its keys ``<<``."""

    value: list[Any] | dict[str, Any]
    anchor: str | None
    size: int = 1
    key: str | None = None
    merging: bool = False
    merged: list[dict[str, Any]] = field(default_factory=list)


class _Building:
    """Plain data from the events of a YAML text."""

    def __init__(self, resolver: Resolver, constructor: SafeConstructor) -> None:
        self.resolver, self.constructor = resolver, constructor
        self.whole: Any = None
        self._open: list[_Open] = []
        self._named: dict[str, tuple[Any, int]] = {}
        self._documents = self._size = 0

    def take(self, event: Event) -> None:
        """Take the next event."""
        import yaml

        if isinstance(event, yaml.ScalarEvent):
            self._put(event, self._scalar(event), 1, event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._put(event, *self._alias(event))
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            self._begin(event, [] if isinstance(event, yaml.SequenceStartEvent) else {})
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            done = self._open.pop()
            if isinstance(done.value, dict) and done.merged:
                parts = (*reversed(done.merged), done.value)
                done.value = {key: value for each in parts for key, value in each.items()}
            self._put(event, done.value, done.size, done.anchor)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._wrong(event, "a second document begins here; keep one")

    def _begin(self, event: Any, value: list[Any] | dict[str, Any]) -> None:
        if len(self._open) == DEEPEST:
            raise self._wrong(event, f"lists and mappings are nested deeper than {DEEPEST}; make it flatter")
        kind = "seq" if isinstance(value, list) else "map"
        if event.tag not in (None, "!", f"tag:yaml.org,2002:{kind}"):
            raise self._wrong(event, f"the tag {event.tag!r} is not known; leave it out")
        self._open.append(_Open(value, event.anchor))

    def _alias(self, event: Any) -> tuple[Any, int]:
        if any(event.anchor == each.anchor for each in self._open):
            raise self._wrong(event, f"the alias {event.anchor!r} is a part of itself; write it out")
        if event.anchor not in self._named:
            raise self._wrong(event, f"the alias {event.anchor!r} has no anchor; write it out")
        return self._named[event.anchor]

    def _put(self, event: Event, value: Any, size: int, anchor: str | None = None) -> None:
        """Put a complete value into its place, counted with everything in it: an alias counts in full each time."""
        if anchor is not None:
            self._named[anchor] = value, size
        if not self._open:
            self.whole = value
            return
        into = self._open[-1]
        into.size += size
        if into.size > MOST:
            raise self._wrong(event, f"more than {MOST} values, with those of aliases; use fewer")
        if isinstance(into.value, list):
            into.value.append(value)
        elif into.key is None:
            into.key = self._key(event, value, into.value)
            into.merging = value == MERGE and bool(getattr(event, "implicit", (False,))[0])  # not in quotes
        else:
            self._entry(event, into, into.key, value)
            into.key = None

    def _key(self, event: Any, key: Any, known: dict[str, Any]) -> str:
        if type(key) is not str:
            shown = "" if isinstance(key, (dict, list)) else f" {key!r}"
            raise self._wrong(event, f"the key{shown} is not a text; put it in quotes")
        if key in known:
            raise self._wrong(event, f"the key {key!r} is given twice; keep one of them")
        return key

    def _entry(self, event: Event, into: _Open, key: str, value: Any) -> None:
        assert isinstance(into.value, dict), "only mappings have keys"
        if not into.merging:
            into.value[key] = value
            return
        many = value if isinstance(value, list) else [value]
        if not all(isinstance(each, dict) for each in many):
            raise self._wrong(event, "'<<' merges mappings; give one, or a list of them")
        into.merged += many

    def _scalar(self, event: ScalarEvent) -> Any:
        import yaml

        tag = event.tag
        if tag in (None, "!"):
            tag = self.resolver.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
        kind = tag.removeprefix("tag:yaml.org,2002:")
        if kind in ("str", "timestamp", "merge", "value") or tag == "!":  # dates stay texts
            return self._text(event)
        if kind not in ("null", "bool", "int", "float"):
            raise self._wrong(event, f"the tag {tag!r} is not known; leave it out")
        try:
            if len(event.value) > LONGEST_NUMBER:
                raise ValueError
            value = getattr(self.constructor, f"construct_yaml_{kind}")(yaml.ScalarNode(tag, event.value))
        except (ValueError, KeyError, ArithmeticError, IndexError):
            raise self._wrong(event, f"{event.value[:40]!r} is not of the type {kind}; correct it") from None
        if type(value) is int and not -WIDEST <= value < WIDEST:
            raise self._wrong(event, f"{event.value[:40]} is beyond 64 bits; give a smaller number")
        return value

    def _text(self, event: ScalarEvent) -> str:
        if found := UNNAMEABLE.search(event.value):
            raise self._wrong(event, f"the text holds U+{ord(found[0]):04X}; leave it out")
        return str(event.value)

    def _wrong(self, event: Any, problem: str) -> _Wrong:
        return _Wrong(problem, event.start_mark.line, event.start_mark.column)
