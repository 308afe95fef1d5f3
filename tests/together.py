"""Many small cases in one test: what pytest does for a case takes four milliseconds, longer than many of them."""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch

from tests.shapes import check_anew

__all__ = ["anew", "together"]


def anew() -> None:
    """No test, and no case of one, depends on those that ran before it."""
    check_anew()
    random.seed(0)
    np.random.seed(0)
    # torch.manual_seed also notes a stack trace for each GPU library, which takes longer than many a test.
    torch.default_generator.manual_seed(0)


def together(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Any]:
    """As ``pytest.mark.parametrize``, in one test: the error of a case says which one it was.

    Fixtures are made once. Below ``@given`` the cases share what is drawn. Cases with the mark ``slow``, as ``few`` and
    ``only`` make them, are one slow test together.

    Args:
        names: of one argument, or of several, as a tuple or with commas between them.
        cases: values of the argument, or a tuple of values for each case.
    """
    keys = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    every = list(cases)
    slow = [case.values for case in every if hasattr(case, "marks")]
    single = len(keys) == 1 and isinstance(names, str)
    quick = [(case,) if single else case for case in every if not hasattr(case, "marks")]
    if not every:  # as golden numbers where their folder is not
        return pytest.mark.skip(reason=f"there is no case of {names}")

    def of(test: Callable[..., None]) -> Any:
        parameters = inspect.signature(test).parameters
        assert {*keys} <= {*parameters}, f"{test.__name__} does not take {names}"
        own = [parameter for name, parameter in parameters.items() if name not in keys]
        if slow:
            own.append(inspect.Parameter("cases", inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(test)
        def all_cases(*given: Any, **named: Any) -> None:
            shared = inspect.Signature(own).bind(*given, **named).arguments
            for values in shared.pop("cases") if slow else quick:
                _one(functools.partial(test, **shared), dict(zip(keys, values, strict=True)))

        all_cases.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
        if not slow:
            return all_cases
        both = [pytest.param(quick, id="quick"), pytest.param(slow, id="others", marks=pytest.mark.slow)]
        return pytest.mark.parametrize("cases", both)(all_cases)

    return of


def _one(test: Callable[..., None], case: dict[str, Any]) -> None:
    anew()
    try:
        test(**case)
    except pytest.skip.Exception as skipped:
        raise AssertionError(f"the case {case} would skip those that follow: {skipped}") from skipped
    except BaseException as error:
        error.add_note(f"the case is {case}")
        raise
