"""What encodings refuse: options that no one means, and features of another shape than they need."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from structpe.encodings import ENCODINGS, Binned, Euclidean, GridOffset, Points
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from structpe.transforms import grid
from tests.together import together

HUGE = 10**7


@together(
    "name, option",
    [
        ("branch-path", "depth"),
        ("child-path", "width"),
        ("eigenpairs", "k"),
        ("eigenvalues", "k"),
        ("expander", "degree"),
        ("label-path", "paths"),
        ("laplacian", "k"),
        ("magnetic-laplacian", "k"),
        ("multi-q-magnetic", "charges"),
        ("parent-child", "width"),
        ("random-walk", "minutes"),
        ("random-walk", "steps"),
        ("rrwp", "steps"),
        ("simple-paths", "steps"),
        ("tabular", "max_k"),
        ("token-laplacian", "k"),
        ("walk-kernel", "length"),
        ("weisfeiler-lehman", "iterations"),
    ],
)
def test_sizes_that_would_fill_the_memory(name: str, option: str) -> None:
    with pytest.raises(EncodingError, match=f"encoding '{name}': {option} is {HUGE}; give 65536 at most"):
        ENCODINGS[name](**{option: HUGE})


@together(
    "name, options, message",
    [
        ("coordinates", {"axes": HUGE}, f"the number of axes is {HUGE}; give 64 at most"),
        ("expander", {"seed": -1}, "the seed is -1; give 0 or more"),
        ("walk-kernel", {"seed": -1}, "the seed is -1; give 0 or more"),
        ("heat-kernel", {"times": (1.0, math.nan)}, r"times are \(1.0, nan\); give one or more, each above 0"),
        ("magnetic-laplacian", {"q": math.inf}, "q is inf; give a finite number"),
        ("personalized-pagerank", {"restart": 1e-300}, "restart is 1e-300; give a probability between 0 and 1"),
        ("personalized-pagerank", {"threshold": math.nan}, "threshold is nan; give 0 or more, or None"),
        ("weisfeiler-lehman", {"iterations": 0}, "iterations is 0; give 1 or more, or None"),
        ("weisfeiler-lehman", {"max_roles": -1}, "max_roles is -1; give 1 or more, or None"),
    ],
)
def test_options_that_no_one_means(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(EncodingError, match=f"encoding '{name}': {message}"):
        ENCODINGS[name](**options)


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("endpoints", "is_edge"),
        ("expander", "virtual"),
        ("grid-rank", "valid"),
        ("token-laplacian", "is_edge"),
        ("triple-offset", "is_relation"),
        ("triple-offset", "virtual"),
    ],
)
def test_a_mark_is_one_number_per_node(name: str, feature: str) -> None:
    marked = replace(path("abc"), features={feature: np.ones((3, 2))})
    with pytest.raises(EncodingError, match=rf"feature '{feature}' has shape \(3, 2\); it marks nodes, so give one"):
        ENCODINGS[name]().one(marked)


def spread(*places: list[float]) -> Structure:
    return replace(path(["x"] * len(places)), features={"coordinates": np.array(places)})


def test_offsets_that_int64_cannot_number() -> None:
    far = spread([0, 0], [10**10, 10**10])
    with pytest.raises(
        EncodingError, match=r"the grid reaches to \[10000000000, 10000000000\], which has more offsets"
    ):
        GridOffset().one(far)
    near = spread([0, 0], [10**9, 10**9])
    assert GridOffset().one(near).pairs()[0, 1].tolist() == [10**9, 10**9]
    assert GridOffset(axes=3).one(grid((2, 2, 2))).pairs()[0, 7].tolist() == [1, 1, 1]


def test_points_that_float32_cannot_hold() -> None:
    with pytest.raises(EncodingError, match="feature 'coordinates' reaches to 1e\\+300, too far for float32"):
        Points().one(spread([0.0, -1e300]))


@pytest.mark.parametrize("name", ["euclidean", "feature", "points", "reordered"])
def test_a_feature_of_edges_is_none_of_nodes(name: str) -> None:
    with pytest.raises(
        EncodingError, match=f"'{name}': features that begin with 'edge_', as 'edge_x' does, are of edg"
    ):
        ENCODINGS[name](key="edge_x")


def test_distances_that_float32_cannot_hold() -> None:
    with pytest.raises(EncodingError, match="feature 'coordinates' reaches to 1e\\+300; give it in larger units"):
        Euclidean().one(spread([0.0, 1e300]))


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (
            {"max_distance": 3},
            r"option 'of' of encoding 'binned', an encoding, is described by its name.*is {'max_distance': 3}",
        ),
        (
            {"name": "distance", "max_distence": 3},
            "encoding 'distance' has no option named 'max_distence'. Did you mean 'max_distance'",
        ),
    ],
)
def test_what_is_binned_is_described_in_full(of: Any, message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        Binned(of=of)
