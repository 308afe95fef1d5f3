"""One test that loops over many small cases: to start a test takes longer than most of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

__all__ = ["looped"]


def looped(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As ``pytest.mark.parametrize``, but one test of all cases; an error has a note of the case that it is of.

    Fixtures are made once. Below ``@given`` the cases share what is drawn.

    Args:
        names: of one argument, or of several with commas between them.
        values: of the argument, or a tuple for each case.
    """
    keys, cases = [name.strip() for name in names.split(",")], list(values)
    assert cases, f"no value of {names}: the test would ask for nothing"

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(test).parameters
        assert {*keys} <= {*parameters}, f"{test.__name__} takes no {names}"
        left = inspect.Signature([parameter for name, parameter in parameters.items() if name not in keys])

        @wraps(test)
        def all_cases(*given: Any, **named: Any) -> None:
            others = left.bind(*given, **named).arguments
            for case in cases:
                chosen = dict(zip(keys, case if len(keys) > 1 else [case], strict=True))
                try:
                    test(**others, **chosen)
                except BaseException as error:
                    error.add_note(f"case: {chosen}")
                    raise

        all_cases.__signature__ = left  # type: ignore[attr-defined]
        return all_cases

    return decorated
