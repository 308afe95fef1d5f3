"""Ways of computing the same thing: first compared, then timed in turns, by the CPU time of this thread."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Disagreement", "Way", "check", "medians"]


TURN = 0.01
"""Seconds of CPU time that a turn takes at the least."""

LONGEST = 1.5
"""Seconds of CPU time after which no round begins; what takes seconds is known well enough after one."""

ELSEWHERE = 0.2
"""The share of the process's CPU time that other threads may take: more would be work that is not timed."""


class Disagreement(Exception):
    """Two ways have computed different things, so that their times say nothing of one another."""


class Elsewhere(Exception):
    """Other threads of the process have worked, whose time is not measured."""


@dataclass(frozen=True)
class Way:
    """One way to compute something of each of several graphs.

    Args:
        run: what is timed; one result per graph.
        read: brings the results into the form in which ways are compared; not timed.
    """

    run: Callable[[], Sequence[Any]]
    read: Callable[[Sequence[Any]], list[NDArray[Any]]]


def check(name: str, ways: Mapping[str, Way], close: float) -> None:
    """Run every way once, which also warms it up, and compare all with the first.

    Args:
        name: of what is computed, for the error.
        ways: by name.
        close: how large a difference may be.

    Raises:
        Disagreement: one differs from the first.
    """
    first, *others = ways
    ours = ways[first].read(ways[first].run())
    for other in others:
        theirs = ways[other].read(ways[other].run())
        if len(theirs) != len(ours):
            raise Disagreement(f"{name}: {other} gives {len(theirs)} results, {first} {len(ours)}; nothing is timed")
        for number, (mine, other_one) in enumerate(zip(ours, theirs, strict=True)):
            if reason := _difference(mine, other_one, close):
                raise Disagreement(
                    f"{name}: {other} and {first} differ on graph {number}, {reason}; so nothing is timed"
                )


def _difference(mine: NDArray[Any], theirs: NDArray[Any], close: float) -> str:
    """What is wrong; empty where nothing is."""
    if mine.shape != theirs.shape:
        return f"of shapes {theirs.shape} and {mine.shape}"
    if np.allclose(mine, theirs, rtol=0, atol=close):
        return ""
    return f"by {np.abs(mine - theirs).max():.2g} at the most where {close:.0e} is allowed"


def medians(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of CPU time of each: the medians of rounds in which they take turns.

    Turns, because a busy machine then slows all alike; time of this thread, because other programs do not count in it;
    no garbage collection, because whose turn it would fall into is chance; memory as the allocator gives it. What is
    quick runs several times in its turn, as the first time finds caches as another has left them. After
    :data:`LONGEST` no round begins.

    Raises:
        Elsewhere: other threads of the process have worked.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    begun, of_all = time.thread_time(), time.process_time()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, run in runs.items():
                times[name] += _turn(run)
            if time.thread_time() - begun > LONGEST:
                break
    finally:
        gc.enable()
    mine, of_all = time.thread_time() - begun, time.process_time() - of_all
    if mine < (1 - ELSEWHERE) * of_all:
        ways = ", ".join(runs)
        raise Elsewhere(
            f"of {of_all:.2f} s for {ways}, {of_all - mine:.2f} s were in other threads; give it one thread"
        )
    return {name: statistics.median(each) for name, each in times.items()}


def _turn(run: Callable[[], object]) -> list[float]:
    """Seconds of each of as many runs as fill a turn, one at least."""
    found: list[float] = []
    while sum(found) < TURN:
        start = time.thread_time()
        run()
        found.append(time.thread_time() - start)
    return found
