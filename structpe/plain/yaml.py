"""YAML, read event by event, since PyYAML's own loaders recurse, multiply aliases and construct objects of tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from structpe.errors import ConfigError

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
        raise ConfigError(f"{what} is not YAML: {problem} ({_place(line, column)})")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the parser in C is not in every build of PyYAML
    try:
        return _Reading(yaml.parse(text, Loader=loader)).whole()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = _place(mark.line, mark.column) if mark is not None else _place(0, 0)
        raise ConfigError(f"{what} is not YAML: {error.problem or error.context} ({place})") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{what} is not YAML: {' '.join(str(error).split())[:200]}") from None


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


def _place(line: int, column: int) -> str:
    return f"line {line + 1}, column {column + 1}"


def _wrong(event: Any, problem: str) -> ConfigError:
    return ConfigError(f"{_place(event.start_mark.line, event.start_mark.column)}: {problem}")


class _Reading:
    """Plain data from the events of a YAML text; each value comes with its size, of aliases in full each time."""

    def __init__(self, events: Iterator[Any]) -> None:
        import yaml

        self._events = events
        self._yaml: Any = yaml
        self._resolver = _with_floats(yaml.resolver.Resolver)()
        self._constructor = yaml.constructor.SafeConstructor()
        self._named: dict[str | None, tuple[Any, int] | None] = {}  # by anchor; None while the value is read

    def whole(self) -> Any:
        """The value of the one document."""
        value, documents = None, 0
        for event in self._events:
            if isinstance(event, self._yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _wrong(event, "a second document begins here; keep one")
            elif isinstance(event, self._yaml.NodeEvent):
                value, _ = self._value(event, 0)
        return value

    def _value(self, event: Any, depth: int) -> tuple[Any, int]:
        if isinstance(event, self._yaml.AliasEvent):
            if event.anchor not in self._named:
                raise _wrong(event, f"the alias {event.anchor!r} has no anchor; write it out")
            if (known := self._named[event.anchor]) is None:
                raise _wrong(event, f"the alias {event.anchor!r} is a part of itself; write it out")
            return known
        if isinstance(event, self._yaml.ScalarEvent):
            made: tuple[Any, int] = self._scalar(event), 1
        else:
            if depth == DEEPEST:
                raise _wrong(event, f"lists and mappings are nested deeper than {DEEPEST}; make it flatter")
            is_list = isinstance(event, self._yaml.SequenceStartEvent)
            kind = "seq" if is_list else "map"
            if event.tag not in (None, "!", f"tag:yaml.org,2002:{kind}"):
                raise _wrong(event, f"the tag {event.tag!r} is not known; leave it out")
            self._named[event.anchor] = None
            made = self._list(depth + 1) if is_list else self._mapping(depth + 1)
        self._named[event.anchor] = made
        return made

    def _list(self, depth: int) -> tuple[list[Any], int]:
        items, size = [], 1
        while not isinstance(event := next(self._events), self._yaml.SequenceEndEvent):
            value, more = self._value(event, depth)
            items.append(value)
            size = _counted(event, size + more)
        return items, size

    def _mapping(self, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        size = 1
        while not isinstance(event := next(self._events), self._yaml.MappingEndEvent):
            key, more = self._value(event, depth)
            if type(key) is not str:
                shown = "" if isinstance(key, (dict, list)) else f" {key!r}"
                raise _wrong(event, f"the key{shown} is not a text; put it in quotes")
            if key in found:
                raise _wrong(event, f"the key {key!r} is given twice; keep one of them")
            merging = key == MERGE and bool(getattr(event, "implicit", (False,))[0])  # not in quotes
            value, also = self._value(event := next(self._events), depth)
            size = _counted(event, size + more + also)
            many = value if isinstance(value, list) else [value]
            if not merging:
                found[key] = value
            elif all(isinstance(each, dict) for each in many):
                merged += many
            else:
                raise _wrong(event, "'<<' merges mappings; give one, or a list of them")
        return {key: value for each in (*reversed(merged), found) for key, value in each.items()}, size

    def _scalar(self, event: Any) -> Any:
        tag = event.tag
        if tag in (None, "!"):
            tag = self._resolver.resolve(self._yaml.ScalarNode, event.value, event.implicit)
        kind = tag.removeprefix("tag:yaml.org,2002:")
        if kind in ("str", "timestamp", "merge", "value") or tag == "!":  # dates stay texts
            return self._text(event)
        if kind not in ("null", "bool", "int", "float"):
            raise _wrong(event, f"the tag {tag!r} is not known; leave it out")
        try:
            if len(event.value) > LONGEST_NUMBER:
                raise ValueError
            value = getattr(self._constructor, f"construct_yaml_{kind}")(self._yaml.ScalarNode(tag, event.value))
        except (ValueError, KeyError, ArithmeticError, IndexError):
            raise _wrong(event, f"{event.value[:40]!r} is not of the type {kind}; correct it") from None
        if type(value) is int and not -WIDEST <= value < WIDEST:
            raise _wrong(event, f"{event.value[:40]} is beyond 64 bits; give a smaller number")
        return value

    def _text(self, event: Any) -> str:
        if found := UNNAMEABLE.search(event.value):
            raise _wrong(event, f"the text holds U+{ord(found[0]):04X}; leave it out")
        return str(event.value)


def _counted(event: Any, size: int) -> int:
    if size > MOST:
        raise _wrong(event, f"more than {MOST} values, with those of aliases; use fewer")
    return size
