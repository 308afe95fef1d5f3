"""A check of a pickle before it is loaded: what it builds must be in proportion to its size.

A pickle is a program. Seven bytes can make a memo of gigabytes, or claim a string of gigabytes; a few hundred bytes can
nest tuples whose hash takes years. Here every operation is traced without being executed, by the stack effects that
Python's ``pickletools`` documents.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from structpe.datasets.files.unpickling import Refused

__all__ = ["look_through"]

DEEPEST = 100
"""Depth of nested tuples, lists and mappings."""
EACH, SLACK = 100, 10**6
"""All operations together may visit EACH values per byte of the file, plus SLACK."""

PAIR = -10
COUNTS = {-2: (1, False), -3: (4, True), -4: (4, False), -5: (8, False)}
"""Codes of ``pickletools`` for arguments with a length prefix -> bytes of the prefix, whether it is signed."""
INSIDE = {"APPEND": 1, "SETITEM": 2, "BUILD": 1, "APPENDS": None, "SETITEMS": None, "ADDITEMS": None}
"""Operations that add values to a container -> number of values, or None for all after the mark."""


class _Operation(NamedTuple):
    name: str
    length: int
    takes: int
    marked: bool
    gives: int


class _Value:
    """A container: its number of values, its depth, and whether it is part of another container."""

    __slots__ = ("depth", "size", "used")

    def __init__(self, size: int, depth: int) -> None:
        self.size, self.depth, self.used = size, depth, False


MARK = _Value(0, 0)


class _End(Exception):
    """Loading the pickle would fail here."""


def look_through(pickled: bytes, cycles: bool = False) -> None:
    """Check that nothing in a pickle is out of proportion to its size. Its validity is not checked.

    Args:
        pickled: content of the file.
        cycles: whether an object may get its state after it was put into another one, as in files of PyTorch
            Geometric, whose objects refer to one another.

    Raises:
        Refused: something is out of proportion.
        EOFError: the pickle claims more bytes than it has; Python would allocate memory for them.
    """
    following = _Following(pickled, cycles)
    try:
        following.over_numbers()
        while following.step():
            following.over_numbers()
    except (_End, LookupError, ValueError):
        return


def _operations() -> list[_Operation | None]:
    """All operations, by opcode."""
    found: list[_Operation | None] = [None] * 256
    for each in pickletools.opcodes:
        before, after = each.stack_before, each.stack_after
        marked = pickletools.markobject in before
        length = 0 if each.arg is None else each.arg.n
        if each.arg is not None and each.arg.name == "stringnl_noescape_pair":
            length = PAIR
        takes = before.index(pickletools.markobject) if marked else len(before)
        found[ord(each.code)] = _Operation(each.name, length, takes, marked, len(after))
    return found


OPERATIONS = _operations()


class _Following:
    """The state while a pickle is traced.

    Args:
        pickled: content of the file.
        cycles: see :func:`look_through`.
    """

    def __init__(self, pickled: bytes, cycles: bool = False) -> None:
        self.cycles, self.pickled, self.at, self.work = cycles, pickled, 0, 0
        self.stack: list[_Value | int] = []
        self.memo: dict[int, _Value | int] = {}

    def over_numbers(self) -> None:
        """Skip the most frequent operations: those that push a number, a mark or a memo entry, or fill the memo."""
        pickled, at, stack, memo = self.pickled, self.at, self.stack, self.memo
        while quick := QUICK.get(pickled[at]):
            width, kind = quick
            if kind == "number":
                stack.append(width)
            elif kind == "mark":
                stack.append(MARK)
            else:
                index = len(memo) if kind == "next" else int.from_bytes(pickled[at + 1 : at + width], "little")
                if kind == "get":
                    stack.append(memo[index])
                elif index > at:
                    raise Refused(f"the file has {at} bytes up to here, and refers to value number {index}")
                else:
                    memo[index] = stack[-1]
            at += width
        self.at = at

    def step(self) -> bool:
        """Trace one operation; return whether there are more."""
        operation = OPERATIONS[self.pickled[self.at]]
        if operation is None or operation.name == "STOP":
            return False
        begin, self.at = self.at, self.at + 1
        argument = self._argument(operation.length)
        if special := SPECIAL.get(operation.name):
            special(self, argument, begin)
        elif operation.name in INSIDE:
            count = INSIDE[operation.name]
            free = self.cycles and operation.name == "BUILD"
            self._change(self._to_mark() if count is None else self._pop(count), free)
        elif operation.gives:
            taken = self._to_mark() if operation.marked else []
            taken += self._pop(operation.takes)
            self.stack.append(
                self._made(taken) if operation.takes or operation.marked or not argument[1] else argument[1]
            )
        return True

    def _argument(self, length: int) -> tuple[int, int]:
        """Start and size of the argument of an operation; move behind it."""
        begin = self.at
        if length >= 0:
            size = length
        elif length in COUNTS:
            width, signed = COUNTS[length]
            size = int.from_bytes(self.pickled[begin : begin + width], "little", signed=signed)
            begin += width
            if size > len(self.pickled) - begin:
                raise EOFError(f"it claims {size} bytes at byte {begin}, and has {max(0, len(self.pickled) - begin)}")
            if size < 0:
                raise _End
        else:
            end = self.pickled.index(b"\n", begin)
            end = self.pickled.index(b"\n", end + 1) if length == PAIR else end
            size = end + 1 - begin
        self.at = begin + size
        if self.at > len(self.pickled):
            raise _End
        return begin, size

    def _pop(self, count: int) -> list[_Value | int]:
        if not count:
            return []
        taken = self.stack[-count:]
        if len(taken) < count or any(each is MARK for each in taken):
            raise _End
        del self.stack[-count:]
        return taken

    def _to_mark(self) -> list[_Value | int]:
        taken: list[_Value | int] = []
        while (each := self.stack.pop()) is not MARK:
            taken.append(each)
        return taken

    def _made(self, parts: Iterable[_Value | int]) -> _Value:
        """A new container with these parts."""
        made = _Value(1, 0)
        self._fill(made, parts)
        return made

    def _change(self, parts: list[_Value | int], free: bool) -> None:
        into = self.stack[-1]
        if into is MARK or isinstance(into, int):
            raise _End
        if into.used and not free:  # its container was counted without these values
            raise Refused("the file changes a value that it has used already")
        self._fill(into, parts)

    def _fill(self, into: _Value, parts: Iterable[_Value | int]) -> None:
        for part in parts:
            size = part if isinstance(part, int) else part.size
            into.size += size
            self.work += size
            if isinstance(part, _Value):
                part.used = True
                into.depth = max(into.depth, part.depth + 1)
        if into.depth > DEEPEST:
            raise Refused(f"the file nests values deeper than {DEEPEST}")
        if self.work > EACH * len(self.pickled) + SLACK:
            raise Refused("the file describes far more values than it has bytes")


def _put(state: _Following, argument: tuple[int, int], begin: int) -> None:
    if (index := int(state.pickled[argument[0] : sum(argument)])) > begin:
        raise Refused(f"the file has {begin} bytes up to here, and refers to value number {index}")
    state.memo[index] = state.stack[-1]


def _get(state: _Following, argument: tuple[int, int], begin: int) -> None:
    state.stack.append(state.memo[int(state.pickled[argument[0] : sum(argument)])])


def _framed(state: _Following, argument: tuple[int, int], begin: int) -> None:
    size = int.from_bytes(state.pickled[argument[0] : sum(argument)], "little")
    if size > len(state.pickled) - state.at:
        raise EOFError(f"it claims {size} bytes at byte {state.at}, and has {len(state.pickled) - state.at}")


SPECIAL: dict[str, Callable[[_Following, tuple[int, int], int], object]] = {
    "POP": lambda state, argument, begin: state.stack.pop(),
    "POP_MARK": lambda state, argument, begin: state._to_mark(),
    "DUP": lambda state, argument, begin: state.stack.append(state.stack[-1]),
    "FRAME": _framed,
    "PUT": _put,
    "GET": _get,
}
"""Operations that do more than pop and push."""


QUICK = {
    **{ord(code): (1, "number") for code in "N\x88\x89"},
    **{ord("K"): (2, "number"), ord("M"): (3, "number"), ord("J"): (5, "number"), ord("G"): (9, "number")},
    **{ord("("): (1, "mark"), 0x94: (1, "next"), ord("q"): (2, "put"), ord("r"): (5, "put")},
    **{ord("h"): (2, "get"), ord("j"): (5, "get")},
}
"""The most frequent opcodes -> their length and effect."""
