"""A look at a pickle before it is loaded: what a few bytes of it can make is bounded by how many bytes there are.

A pickle is a program. Seven bytes of it make a memo of gigabytes, or promise a text of them; a few hundred nest tuples
whose hash takes years. Here every operation is followed without doing it, by what Python's ``pickletools`` say of it:
how much it takes from the stack, and how much it puts there.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from structpe.datasets.files.unpickling import Refused

__all__ = ["look_through"]

DEEPEST = 100
"""Tuples, lists and mappings within one another."""
EACH, SLACK = 100, 10**6
"""So many values for each byte, and as many more in any case, may be gone through by all operations together."""

NEWLINE, PAIR = -1, -10
COUNTS = {-2: (1, False), -3: (4, True), -4: (4, False), -5: (8, False)}
"""The negative numbers of ``pickletools`` for arguments that begin with their length: its bytes, whether signed."""
INSIDE = {"APPEND": 1, "SETITEM": 2, "BUILD": 1, "APPENDS": None, "SETITEMS": None, "ADDITEMS": None}
"""What changes the value below it by so many, or by all after the mark."""


class _Operation(NamedTuple):
    name: str
    length: int
    takes: int
    marked: bool
    gives: int


class _Value:
    """A container: how many values it holds, how deep they are, and whether it is a part of another."""

    __slots__ = ("depth", "size", "used")

    def __init__(self, size: int, depth: int) -> None:
        self.size, self.depth, self.used = size, depth, False


MARK = _Value(0, 0)


class _End(Exception):
    """Whoever loads the pickle will not come further than this."""


def look_through(pickled: bytes, cycles: bool = False) -> None:
    """Nothing in a pickle is out of proportion to its size. Whether it is a pickle at all is not checked here.

    Args:
        pickled: the whole of it.
        cycles: whether an object may be given its state after it was put into another one, as those of PyTorch
            Geometric are, which know one another.

    Raises:
        Refused: something is.
        EOFError: it promises more than there is; Python would make room for it first.
    """
    following = _Following(pickled, cycles)
    try:
        following.over_numbers()
        while following.step():
            following.over_numbers()
    except (_End, LookupError, ValueError):
        return


def _operations() -> list[_Operation | None]:
    """By their bytes."""
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
    """The state of a pickle that is gone through.

    Args:
        pickled: the whole of it.
        cycles: as :func:`look_through` has it.
    """

    def __init__(self, pickled: bytes, cycles: bool = False) -> None:
        self.cycles, self.pickled, self.at, self.work = cycles, pickled, 0, 0
        self.stack: list[_Value | int] = []
        self.memo: dict[int, _Value | int] = {}

    def over_numbers(self) -> None:
        """Over operations that put a number on the stack, or the top of it into the memo and back: most are."""
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
                    raise Refused(f"the file has {at} bytes up to here, and numbers a value {index}")
                else:
                    memo[index] = stack[-1]
            at += width
        self.at = at

    def step(self) -> bool:
        """One operation; whether there are more."""
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
        """Where the argument of an operation begins, and its size; goes on behind it."""
        begin = self.at
        if length >= 0:
            size = length
        elif length in COUNTS:
            width, signed = COUNTS[length]
            size = int.from_bytes(self.pickled[begin : begin + width], "little", signed=signed)
            begin += width
            if size > len(self.pickled) - begin:
                raise EOFError(f"it promises {size} bytes at byte {begin}, and has {max(0, len(self.pickled) - begin)}")
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
        """A container of these."""
        made = _Value(1, 0)
        self._fill(made, parts)
        return made

    def _change(self, parts: list[_Value | int], free: bool) -> None:
        into = self.stack[-1]
        if into is MARK or isinstance(into, int):
            raise _End
        if into.used and not free:  # what stands for it would have to be counted again
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
        raise Refused(f"the file has {begin} bytes up to here, and numbers a value {index}")
    state.memo[index] = state.stack[-1]


def _get(state: _Following, argument: tuple[int, int], begin: int) -> None:
    state.stack.append(state.memo[int(state.pickled[argument[0] : sum(argument)])])


def _framed(state: _Following, argument: tuple[int, int], begin: int) -> None:
    size = int.from_bytes(state.pickled[argument[0] : sum(argument)], "little")
    if size > len(state.pickled) - state.at:
        raise EOFError(f"it promises {size} bytes at byte {state.at}, and has {len(state.pickled) - state.at}")


SPECIAL: dict[str, Callable[[_Following, tuple[int, int], int], object]] = {
    "POP": lambda state, argument, begin: state.stack.pop(),
    "POP_MARK": lambda state, argument, begin: state._to_mark(),
    "DUP": lambda state, argument, begin: state.stack.append(state.stack[-1]),
    "FRAME": _framed,
    "PUT": _put,
    "GET": _get,
}
"""What does something else than take from the stack and put there."""


QUICK = {
    **{ord(code): (1, "number") for code in "N\x88\x89"},
    **{ord("K"): (2, "number"), ord("M"): (3, "number"), ord("J"): (5, "number"), ord("G"): (9, "number")},
    **{ord("("): (1, "mark"), 0x94: (1, "next"), ord("q"): (2, "put"), ord("r"): (5, "put")},
    **{ord("h"): (2, "get"), ord("j"): (5, "get")},
}
"""By their bytes: the lengths of most operations, and what they do."""
