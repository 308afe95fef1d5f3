"""Features that do not fit what they are said to be are refused, in words."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from structpe.data.features import Categories, Numbers
from structpe.errors import ConfigError


def test_what_fits_is_taken() -> None:
    Categories((3, 2)).check(np.array([[0, 1], [2, 0]], dtype=np.uint8), "atoms")
    Categories((3,)).check(np.zeros((0, 1), dtype=np.int64), "atoms")
    Numbers(2).check(np.array([[0.5, -1e30]]), "atoms")
    Numbers(1).check(np.array([[True]]), "atoms")
    assert Categories((3, 2)).columns == 2


@pytest.mark.parametrize(
    ("features", "values", "message"),
    [
        (Categories((3,)), np.array([[3]]), r"atoms: column 0 has values from 0 to 3; it has 3 categories, 0\.\.2"),
        (Categories((3, 2)), np.array([[0, -1]]), r"atoms: column 1 has values from -1 to 0; it has 2 categories"),
        (
            Categories((3,)),
            np.array([[1.0]]),
            "atoms are categories, so they must be integers; they have dtype float64",
        ),
        (Categories((3,)), np.array([[1, 2]]), r"atoms have shape \(1, 2\); 1 numbers are needed for each"),
        (Numbers(2), np.array([1.0, 2.0]), r"atoms have shape \(2,\); 2 numbers are needed for each"),
        (Numbers(1), np.array([[np.nan]]), "atoms are not all finite; remove or fill NaN and infinity first"),
        (Numbers(1), np.array([[np.inf]]), "atoms are not all finite"),
    ],
)
def test_what_does_not_fit_is_refused(
    features: Categories | Numbers, values: NDArray[np.generic], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        features.check(values, "atoms")
