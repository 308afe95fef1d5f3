"""Adjacency matrices and images: arrays, tensors, sparse matrices and Pillow, there and back."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from structpe import StructPEError, Structure, as_structure, convert, path
from structpe.transforms import grid
from tests.same import assert_same
from tests.together import together


@st.composite
def simple(draw: st.DrawFn) -> Structure:
    """What a matrix can say: no parallel edges, edges in the order of rows."""
    size, directed = draw(st.integers(1, 7)), draw(st.booleans())
    node = st.integers(0, size - 1)
    pairs = draw(st.sets(st.tuples(node, node)))
    pairs = {(min(pair), max(pair)) for pair in pairs} if not directed else pairs
    features = {}
    if draw(st.booleans()):
        weights = draw(st.lists(st.integers(1, 9), min_size=len(pairs), max_size=len(pairs)))
        features["edge_weight"] = np.array(weights, dtype=draw(st.sampled_from([np.int64, np.float32])))
    edges = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return Structure(("",) * size, edges, directed=directed, features=features)


@given(simple())
def test_matrices_there_and_back(structure: Structure) -> None:
    dense, sparse = convert(structure, "numpy"), convert(structure, "scipy")
    np.testing.assert_array_equal(dense, sparse.todense())
    assert_same(structure, as_structure(dense, kind="adjacency", directed=structure.directed))
    assert_same(structure, as_structure(torch.from_numpy(dense), kind="adjacency", directed=structure.directed))
    for form in (sparse, sparse.tocoo(), scipy.sparse.lil_matrix(sparse), sparse.todok()):
        assert_same(structure, as_structure(form, directed=structure.directed))
    assert as_structure(sparse).directed == bool((dense != dense.T).any())


def test_entries_that_stand_twice_are_added_and_zeros_are_none() -> None:
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    structure = as_structure(matrix)
    assert structure.edges.tolist() == [[0, 1]]
    assert structure.features["edge_weight"].tolist() == [3.0]


@given(st.data())
def test_images_there_and_back(data: Any) -> None:
    axes = data.draw(st.integers(2, 3))
    shape = data.draw(st.lists(st.integers(1, 3), min_size=axes, max_size=axes))
    patch = data.draw(st.lists(st.integers(1, 3), min_size=axes, max_size=axes))
    channels = data.draw(st.sampled_from(["last", "first", "none"]))
    whole = [n * part for n, part in zip(shape, patch, strict=True)]
    if channels != "none":
        whole.insert(axes if channels == "last" else axes - 2, data.draw(st.integers(1, 3)))
    pixels = np.arange(np.prod(whole), dtype=np.uint16).reshape(whole)
    options = {"kind": "image", "patch": patch, "channels": channels}
    structure = as_structure(pixels, **options)
    assert_same(grid(shape), structure, without=("features",))
    np.testing.assert_array_equal(convert(structure, "numpy", **options), pixels)


def test_patches_are_cut_as_vision_transformers_cut_them() -> None:
    pixels = np.arange(4 * 6 * 3).reshape(4, 6, 3)
    structure = as_structure(pixels, kind="image", patch=2)
    assert structure.size == 6
    assert structure.features["coordinates"].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert structure.features["x"][4].tolist() == pixels[2:4, 2:4].reshape(-1).tolist()
    assert as_structure(torch.zeros(3, 8, 8), kind="image", patch=(4, 2), channels="first").size == 8
    video = as_structure(np.zeros((4, 8, 8, 3)), kind="image", patch=(2, 4, 4))
    assert (video.size, video.features["coordinates"].shape, video.features["x"].shape) == (8, (8, 3), (8, 96))


def test_images_of_pillow() -> None:
    image = Image.new("RGB", (6, 4), (1, 2, 3))
    image.putpixel((5, 0), (9, 9, 9))
    structure = as_structure(image)
    assert structure.size == 24
    assert structure.features["x"][5].tolist() == [9, 9, 9]
    np.testing.assert_array_equal(convert(structure, "numpy", kind="image"), np.asarray(image))
    assert as_structure(image.convert("L"), patch=2).features["x"].shape == (6, 4)
    assert as_structure(image.convert("P")).features["x"].shape == (24, 4)
    file = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(file, "png")
    with pytest.raises(StructPEError, match=r"the image cannot be read: .*; restore its file"):
        as_structure(Image.open(io.BytesIO(file.getvalue()[:2000])))


@together(
    "array, options, message",
    [
        (np.eye(3), {}, r"an array of shape \(3, 3\) does not say what it is; give kind='adjacency' for an adjacency"),
        (np.eye(3), {"kind": "graph"}, r"an array of shape \(3, 3\) cannot be of kind 'graph'; give kind='adjacency'"),
        (np.ones((2, 3)), {"kind": "adjacency"}, r"the matrix has shape \(2, 3\); an adjacency matrix is square"),
        (np.ones(3), {"kind": "adjacency"}, r"the matrix has shape \(3,\); an adjacency matrix is square"),
        (np.eye(2) * 1j, {"kind": "adjacency"}, "the matrix has dtype complex128; give truth values, or real numbers"),
        (np.array([[0, np.nan], [0, 0]]), {"kind": "adjacency"}, "feature 'edge_weight' is not finite in row 0"),
        (np.zeros((0, 0)), {"kind": "adjacency"}, "the graph has no node"),
        (np.triu(np.ones((2, 2))), {"kind": "adjacency", "directed": False}, "has no counterpart 1 -> 0"),
        (torch.eye(3).to_sparse(), {"kind": "adjacency"}, "the array is a sparse_coo tensor; convert it first"),
        (np.ones(3), {"kind": "image"}, r"the array has shape \(3,\); an image is \(H, W\) or \(H, W, C\), a video"),
        (
            np.ones((5, 4)),
            {"kind": "image", "patch": 2},
            r"pixels of shape \(5, 4\) cannot be cut into patches of \(2, 2",
        ),
        (np.ones((4, 4)), {"kind": "image", "patch": (1, 2, 2)}, r"patch is \[1, 2, 2\]; give one whole number from 1"),
        (np.ones((4, 4)), {"kind": "image", "patch": 0}, "patch is 0; give one whole number from 1"),
        (
            np.ones((4, 4)),
            {"kind": "image", "channels": "both"},
            "'channels' of converter 'numpy' takes one of 'last', 'first', 'none'; given is 'both'",
        ),
        (np.ones((2048, 1024), dtype=bool), {"kind": "image"}, "1048576 nodes at most"),
        (np.array(["a"]), {"kind": "image"}, "the pixels have dtype <U1; give numbers or booleans"),
        (scipy.sparse.coo_array(np.ones((2, 3))), {}, r"the matrix has shape \(2, 3\)"),
        (scipy.sparse.coo_array(np.ones(3)), {}, r"the array has shape \(3,\)"),
    ],
)
def test_what_is_wrong_is_said(array: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(StructPEError, match=message):
        as_structure(array, **options)


def test_what_an_array_cannot_say_is_named() -> None:
    with pytest.raises(StructPEError, match="there are 2 edges 0 -> 1; a matrix holds one, join them"):
        convert(Structure(("a", "b"), [[0, 1], [0, 1]]), "scipy")
    with pytest.raises(StructPEError, match="edge 0 has the weight 0, which means no edge in a matrix"):
        convert(Structure(("a",), [[0, 0]], features={"edge_weight": np.zeros(1)}), "numpy")
    with pytest.raises(StructPEError, match="a dense matrix of 40000 nodes is too large; 32768 at most, use 'scipy'"):
        convert(Structure(("",) * 40_000, []), "numpy")
    with pytest.raises(StructPEError, match="the structure has no feature 'coordinates'; an image is made of"):
        convert(path(["a"]), "numpy", kind="image")
    structure = as_structure(np.ones((4, 4)), kind="image", patch=2)
    with pytest.raises(StructPEError, match=r"'x' has shape \(4, 4\), which does not fit patches of \(3, 3\)"):
        convert(structure, "numpy", kind="image", patch=3)
    places = np.zeros((4, 2), dtype=np.int64)
    with pytest.raises(StructPEError, match=r"4 nodes do not fill a grid of shape \(1, 1\), each place once"):
        convert(replace(structure, features={**structure.features, "coordinates": places}), "numpy", kind="image")
    with pytest.raises(StructPEError, match=r"converter 'pillow' only reads; these also write: .*numpy"):
        convert(structure, "pillow")
