"""What was skipped and why, at the end of a run: a reason is "what is needed: which of it"."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import pytest

__all__ = ["lines", "pytest_terminal_summary"]

SHOWN = 4
"""Of each group, the most that are named."""


def lines(reasons: Iterable[str]) -> list[str]:
    """A line in all, then one for each group of reasons, the largest first."""
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for reason in reasons:
        what, _, which = reason.removeprefix("Skipped: ").partition(": ")
        groups[what][which] += 1
    ordered = sorted(groups.items(), key=lambda group: (-group[1].total(), group[0]))
    total = sum(group.total() for group in groups.values())
    return [f"{total} skipped:", *(f"  {which.total()}: {what}{_named(which)}" for what, which in ordered)]


def _named(which: Counter[str]) -> str:
    names = [name for name, _ in which.most_common() if name]
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f" ({', '.join(names[:SHOWN])}{more})" if names else ""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple)]
    if reasons:
        terminalreporter.section("skipped")
        for line in lines(reasons):
            terminalreporter.line(line)
