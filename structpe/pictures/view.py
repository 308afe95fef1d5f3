"""The data of a picture: a structure, the values of encodings, and the heads with their means by distance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.formats import as_structure
from structpe.pictures.head_patterns import CONTENTS, Patterns, Quantity, Trained, Untrained, of_encoder
from structpe.pictures.heat import Heat, check_size, heat_of, in_order, unit_names
from structpe.pictures.layout import form_of
from structpe.pictures.style import PictureError
from structpe.positions import PositionModel, Sum
from structpe.structure import Structure

__all__ = ["DistanceCurve", "LayerGroup", "Looked", "View", "by_distance", "distances", "view"]


@dataclass(frozen=True, eq=False)
class DistanceCurve:
    """Means by distance.

    Attributes:
        distance: (k,) the sorted distances.
        mean: (..., k) means of each head, NaN for a distance without numbers.
        signed: whether distances have a sign: the key is after (+) or before (-) the query in reading order.
    """

    distance: NDArray[np.float64]
    mean: NDArray[np.float64]
    signed: bool


def distances(structure: Structure) -> tuple[NDArray[np.float64], bool]:
    """(u, u) the distance of each key from each query, and whether it has a sign.

    In a sequence it is the offset of the key's node; in other structures the length of a shortest path between the two
    nodes, ignoring directions, NaN without a path.
    """
    owner = structure.unit_owner
    if form_of(structure) == "sequence" and structure.order is not None:
        place = structure.order[owner].astype(np.float64)
        return place[None, :] - place[:, None], True
    ones = np.ones(len(structure.edges))
    graph = csr_matrix((ones, (structure.edges[:, 0], structure.edges[:, 1])), shape=(structure.size,) * 2)
    ways = np.asarray(shortest_path(graph, directed=False, unweighted=True))
    ways[~np.isfinite(ways)] = np.nan
    return ways[np.ix_(owner, owner)], False


def by_distance(quantity: NDArray[np.float64], structure: Structure) -> DistanceCurve:
    """The mean over all pairs of each distance.

    Args:
        quantity: (..., u, u) a number for each pair of units, query and key; NaN for pairs without one.
        structure: the structure of the units.
    """
    apart, signed = distances(structure)
    occurring = np.unique(apart[np.isfinite(apart)])
    means = [_mean(quantity[..., apart == distance]) for distance in occurring]
    return DistanceCurve(occurring, np.stack(means, axis=-1), signed)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over the last axis, without NaN."""
    there = np.isfinite(values)
    count = there.sum(axis=-1)
    total = np.where(there, values, 0.0).sum(axis=-1)
    mean: NDArray[np.float64] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean


Looked: TypeAlias = "Encoding | PositionModel | Untrained | Trained"
MOST_HEADS = 64
"""Largest number of maps of heads in one picture."""
WORDS = {"bias": "bias added to scores", "scores": "scores, less the mean of a row", "attention": "attention"}


@dataclass(frozen=True, eq=False)
class LayerGroup:
    """The heads of consecutive layers with equal values.

    Attributes:
        title: the layers.
        heads: a map for each head, on one scale.
        curve: means by distance of each head.
    """

    title: str
    heads: tuple[Heat, ...]
    curve: DistanceCurve


@dataclass(frozen=True, eq=False)
class View:
    """The data of a picture or a page.

    Attributes:
        structure: the graph, in the form of the model.
        heats: a map for each encoding.
        blocks: the heads of a position model, by layers; empty without one.
        said: the title of the blocks: model and quantity.
        notes: notes about parts that cannot be shown.
        word: the quantity of the blocks.
    """

    structure: Structure
    heats: tuple[Heat, ...]
    blocks: tuple[LayerGroup, ...] = ()
    said: str = ""
    notes: tuple[str, ...] = ()
    word: str = ""

    @property
    def title(self) -> str:
        """The name of the structure, and its size."""
        s = self.structure
        units = f", {s.unit_count} units" if s.units is not None else ""
        nodes, edges = _count(s.size, "node"), _count(len(s.edges), "edge")
        return f"{s.name or 'a structure'}: {nodes}, {edges}{units}"


def view(
    structure: Any, what: Sequence[Looked] = (), quantity: Quantity | None = None, slice: int = 0, seed: int = 0
) -> View:
    """Compute the data of a picture.

    Args:
        structure: a :class:`Structure`, or an object of another library for ``as_structure``. For a trained model, its
            form of the structure is shown.
        what: encodings; a position model, also from :func:`structpe.pictures.head_patterns.begin`, in an encoder with
            random projections; or a trained model from :func:`structpe.pictures.head_patterns.load`. The encodings of a
            model are included.
        quantity: the quantity of heads: ``bias``, ``scores`` or ``attention``; None for the bias if there is one,
            otherwise the scores.
        slice: component of the vector of each pair, for encodings with vectors.
        seed: seed of the random projections.

    Raises:
        EncodingError, PositionError: an encoding or a model does not fit the structure.
        PictureError: there are more than 1,000 units or two models, or the model does not have the quantity.
    """
    models = [each for each in what if not isinstance(each, Encoding)]
    if len(models) > 1:
        raise PictureError(f"{len(models)} position models are given; a picture shows one, or their sum: a + b")
    trained = models[0] if models and isinstance(models[0], Trained) else None
    shown = trained.structure if trained is not None else as_structure(structure)
    check_size(shown)
    heats = tuple(heat_of(shown, e, slice if e.arity == 2 else 0) for e in _encodings(what))
    if not models:
        return View(shown, heats)
    position = _position(models[0])
    if position.own_attention:
        own = f"{_name(position)} has its own attention, which does not return weights"
        return View(shown, heats, notes=(f"{own}: only its encodings are shown",))
    patterns = trained.patterns if trained is not None else _asked(shown, position, seed)
    assert patterns is not None
    chosen: Quantity = quantity or ("scores" if patterns.bias is None else "bias")
    blocks, notes = _blocks(shown, patterns, chosen)
    when = _when(models[0])
    content = CONTENTS["same"] if trained is None else trained.content
    said = f"{_name(position)} {when}: {WORDS[chosen]}" + ("" if chosen == "bias" else f"; {content}")
    return View(shown, heats, blocks, said, notes, WORDS[chosen])


def _asked(structure: Structure, position: PositionModel, seed: int) -> Patterns:
    try:
        return of_encoder(structure, position, seed)
    except PositionError as error:
        if structure.name and not error.places:  # add the name of the structure, as the error is about a batch
            error.at(structure.name)
        raise


def _encodings(what: Sequence[Looked]) -> list[Encoding]:
    found: list[Encoding] = []
    for each in what:
        found += [each] if isinstance(each, Encoding) else _position(each).encodings
    return list(dict.fromkeys(found))


def _position(model: Looked) -> PositionModel:
    position = model.position if isinstance(model, (Trained, Untrained)) else model
    if not isinstance(position, PositionModel):
        raise PictureError(
            f"{model!r} is neither an encoding nor a position model; structpe.build(name, dims) makes one by name"
        )
    return position


def _when(model: Looked) -> str:
    if isinstance(model, Trained):
        return f"trained, {model.name}"
    return f"at initialisation, seed {model.seed}" if isinstance(model, Untrained) else "as given"


def _name(position: PositionModel) -> str:
    if isinstance(position, Sum):
        return " + ".join(_name(each) for each in position) or "no positions"
    return position.name


def _blocks(
    structure: Structure, patterns: Patterns, quantity: Quantity
) -> tuple[tuple[LayerGroup, ...], tuple[str, ...]]:
    """The heads of all layers for which there is room, and notes about the others."""
    numbers = patterns.quantity(quantity).double().numpy()
    names, read = unit_names(structure), in_order(structure)
    layers = list(_alike(numbers))
    shown = layers[: max(1, MOST_HEADS // numbers.shape[1])]
    left = f"layers {shown[-1][1] + 2} to {len(numbers)} are left out, as the picture has room for {MOST_HEADS} heads"
    blocks = []
    for first, last in shown:
        title = f"layer {first + 1}" if first == last else f"layers {first + 1} to {last + 1}, alike"
        title = "all layers, alike" if len(numbers) > 1 and (first, last) == (0, len(numbers) - 1) else title
        heads = tuple(_head(number, each[np.ix_(read, read)], names) for number, each in enumerate(numbers[first], 1))
        blocks.append(LayerGroup(title, heads, by_distance(numbers[first], structure)))
    return tuple(blocks), () if shown == layers else (left,)


def _alike(numbers: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """First and last of each run of layers with equal values."""
    first = 0
    for layer in range(1, len(numbers) + 1):
        if layer == len(numbers) or not np.array_equal(numbers[layer], numbers[first], equal_nan=True):
            yield first, layer - 1
            first = layer


def _head(number: int, values: NDArray[np.float64], names: tuple[str, ...]) -> Heat:
    silent = ~np.isfinite(values)
    return Heat(f"head {number}", values, names, names, special={"does not attend": silent} if silent.any() else {})


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
