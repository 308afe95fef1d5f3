"""How many examples Hypothesis draws: a part of what a test asks for if it is to be quick, else twice as many.

The profile decides, so that ``--hypothesis-profile thorough`` draws more of all tests: ``make test-slow`` says so.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings

__all__ = ["examples", "register"]

USUAL = 50
"""How many a test asks for that does not say."""
FEWEST = 4


def register() -> None:
    """The two profiles, of which the quick one is loaded.

    The machines that run tests share their cores: the time of one example says nothing. Examples are the same each
    time, so that a failure in continuous integration is a failure at home.
    """
    for name, count in (("quick", USUAL // 4), ("thorough", 2 * USUAL)):
        settings.register_profile(name, deadline=None, derandomize=True, max_examples=count)
    settings.load_profile("quick")


def examples(count: int, **others: Any) -> settings:
    """Settings of a test that asks for so many examples, and takes the part of them that the profile has."""
    return settings(max_examples=max(min(FEWEST, count), count * settings.default.max_examples // USUAL), **others)
