"""Every model of the registry: what its row of Table 1 claims is measured, and the laws that hold for all of them.

A new file in a folder of ``structpe/positions`` is tested here without a line in this file.
"""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from structpe.attention import KERNELS, attend
from structpe.encodings import ENCODINGS, Feature
from structpe.errors import PositionError, UnsupportedTerm
from structpe.positions import MODELS, Cells, Dims, PositionModel, Positions, Site, Sources, build, describe
from structpe.positions.base import PREPARED
from structpe.registry import Registry
from structpe.terms import Terms
from structpe.transforms.nodes import with_virtual_node
from tests.positions.cases import (
    BLOCKS,
    CAUSAL,
    LEARNABLE,
    NAMES,
    SYMMETRIC,
    TERMS,
    TREES,
    TWO_PARTS,
    Around,
    able,
    accepts,
    causal,
    encoded,
    labelled_path,
    noise,
    present,
    tolerance,
    used_by,
)
from tests.positions.cases import TWO_LAYERS as DIMS
from tests.positions.cases import of_two_layers as made
from tests.representatives import few, fewer
from tests.strategies import relabelled
from tests.together import together

pytestmark = pytest.mark.usefixtures("coarse_paths")

SHARINGS = ["none", "head-wise", "layer-wise", "both"]
SEVERAL = [Dims(8, 2, 3), Dims(12, 3, 1), Dims(16, 1, 2)]


@cache
def kept(name: str) -> PositionModel:
    """A model that tests leave as it is."""
    return made(name)


@cache
def of_trees(name: str) -> Positions:
    """What its encodings say of the structures of most laws."""
    return encoded(kept(name), TREES)


# --- the row of Table 1 ---


@pytest.mark.parametrize("name", NAMES)
def test_its_row_is_as_claimed(name: str) -> None:
    """One case for all that is cheap to measure."""
    _parameters_are_as_many_as_claimed(name)
    _it_enters_where_claimed(name)
    _its_reference_point_is_as_claimed(name)


def _parameters_are_as_many_as_claimed(name: str) -> None:
    for dims, sharing in itertools.product(SEVERAL, SHARINGS if accepts(name, "sharing") else [None]):
        model = made(name, dims, **({"sharing": sharing} if sharing else {}))
        assert sum(p.numel() for p in model.parameters()) == model.claimed_params(), (
            f"{name} claims {model.spec.cells.params} with {model.sizes}, sharing {sharing}"
        )
        assert any(p.requires_grad for p in model.parameters()) == model.spec.cells.learnable


@together("name", NAMES)
def test_it_has_no_layer_that_it_was_not_built_for(name: str) -> None:
    """Also if its layers are all the same: a wrong number is a slip, and one from the end would be another layer."""
    model = kept(name)
    given: dict[str, int] = {site: PREPARED[site] + 1 for site in model.sites if site != "inputs"}
    for site, before in {**given, **({"attend": 2} if model.own_attention else {})}.items():
        for layer in (-1, 2):
            after = (Terms(),) if site == "attend" else ()
            with pytest.raises(PositionError, match=rf"built for 2 layers, 0\.\.1; there is no layer {layer}: "):
                getattr(model, site)(*[None] * before, Site(layer), *after)


@torch.no_grad()
def _it_enters_where_claimed(name: str) -> None:
    """What is added to the units does not depend on them; a network over them, or a product with them, is no APE."""
    model, x = kept(name), noise(3, 10, 8)
    prepared = model.prepare(of_trees(name))
    at_input = _adds(x, lambda units: model.inputs(units, prepared))
    sites = [Site(layer) for layer in range(DIMS.layers)]
    at_layers = [_adds(x, partial(_before_attention, model, prepared, site)) for site in sites]
    in_attention = [_in_attention(model, prepared, site) for site in sites]
    ape, mam = at_input or any(at_layers), any(in_attention)
    assert {(True, True): "both", (True, False): "APE", (False, True): "MAM", (False, False): "-"}[ape, mam] == (
        model.spec.cells.injection
    )
    assert any(at_layers[1:]) or any(in_attention[1:]) or not model.spec.cells.recurring
    assert not (any(at_layers[1:]) or any(in_attention[1:])) or model.spec.cells.recurring


def _adds(x: Tensor, change: Callable[[Tensor], Tensor]) -> bool:
    """Whether the change adds, or concatenates, something that is the same for slightly different units.

    The units themselves may be multiplied by a constant. Beside means that some channels lose what was in them.
    """
    step = 1e-3 * noise(*x.shape, seed=1)
    before, after = change(x), change(x + step)
    by_channel = ((after - before) * step).flatten(0, -2).sum(0) / (step * step).flatten(0, -2).sum(0)
    factor = torch.where(by_channel.abs() < 1e-9, 0, by_channel[by_channel.abs().argmax()])
    added = before - factor * x
    same = torch.allclose(after - factor * (x + step), added, rtol=0, atol=1e-9)
    return same and not torch.allclose(added, torch.zeros_like(added), rtol=0, atol=1e-9) and bool(factor.any())


def _before_attention(model: PositionModel, prepared: Any, site: Site, x: Tensor) -> Tensor:
    return _sources(model, prepared, site, model.layer(x, prepared, site))


def _in_attention(model: PositionModel, prepared: Any, site: Site) -> bool:
    """Whether attention heeds positions: by terms, or, where it is a block, by giving something else for others."""
    x = noise(1, 10, 8)
    both = [encoded(model, [structure]) for structure in (TREES[0], labelled_path(10))]
    if not model.own_attention:
        return bool(model.terms(prepared, site).used()) or _queries_heed(model, [model.prepare(p) for p in both], site)
    here, there = (model.attend(x, model.prepare(positions), site, Terms())[0] for positions in both)
    return not torch.allclose(here, there, rtol=0, atol=1e-9)


def _queries_heed(model: PositionModel, prepared: list[Any], site: Site) -> bool:
    """Whether a network makes queries out of units and positions, so that nothing is merely added to them."""
    x = noise(1, 10, 8)
    if "sources" not in model.sites or any(_adds(x, partial(_sources, model, each, site)) for each in prepared):
        return False
    here, there = (_sources(model, each, site, x) for each in prepared)
    return not torch.allclose(here, there, rtol=0, atol=1e-9)


def _sources(model: PositionModel, prepared: Any, site: Site, x: Tensor) -> Tensor:
    return model.sources(Sources(x, x, x), prepared, site).query


@torch.no_grad()
def _its_reference_point_is_as_claimed(name: str) -> None:
    """Text in front of a text moves what an absolute model says of it, and not what a relative one says.

    An absolute model may also count from the end: then it is text behind that moves it.
    """
    size, by = 6, 5
    model, x, other = kept(name), noise(1, size, 8), noise(1, by, 8, seed=1)
    here, there = encoded(model, [labelled_path(size)]), encoded(model, [labelled_path(by + size)])
    unseen = torch.arange(by + size)[None, None, None] >= by
    moved = Around(model)(there, torch.cat([other, x], dim=1), unseen)[:, by:]
    before = Around(model)(there, torch.cat([x, other], dim=1), unseen.flip(-1))[:, :size]
    alone = Around(model)(here, x)
    stays = all(torch.allclose(now, alone, rtol=0, atol=1e-9) for now in (moved, before))
    claimed = model.spec.cells.reference
    assert stays == (claimed == "R")
    if claimed == "A":  # what it says in attention, if anything, moves too
        pairs = _attended(model, there, by + size, unseen)[:, :, by:]
        assert not _terms(model, here).used() or not torch.allclose(_attended(model, here, size), pairs, atol=1e-9)
    if claimed == "B" and not model.own_attention:
        assert _terms(model, here).used()


@pytest.mark.parametrize("name", few(NAMES))
@torch.no_grad()
def test_it_is_unbound_as_claimed(name: str) -> None:
    """Far beyond every table, two neighbouring places are still distinguished, or not.

    Some parameters will do: a function of the distance that levels out does so sooner for large ones, and a network
    that comes to rest among equal units does so sooner for small ones.
    """
    claimed, model = MODELS[name].spec.cells.unbound, _first_layer(name)
    far = _beyond(model)
    positions = encoded(model, [labelled_path(far)])
    factors = (1, 1e-2, 5) if any(True for _ in model.parameters()) else (1,)
    assert any(_unbound(_times(name, factor), positions, far) for factor in factors) == claimed


def _beyond(model: PositionModel) -> int:
    """Beyond all sizes of its parameters, the numbers that it or an encoding is given, and products of its own two.

    600 is enough for every model; a larger product is no size of a table.
    """
    sizes = [size for tensor in (*model.parameters(), *model.buffers()) for size in tensor.shape]
    options = [o for each in (model, *model.encodings) for o in each.options().values() if isinstance(o, int)]
    own = [o for o in model.options().values() if isinstance(o, int)]
    products = [a * b for a, b in itertools.combinations(own, 2) if a * b < 560]
    return min(600, 40 + max([64, *sizes, *options, *products]))


def _first_layer(name: str) -> PositionModel:
    """What a model says of positions in its first layer is measured; a block, which has its own network, has two."""
    return made(name, DIMS if name in BLOCKS else replace(DIMS, layers=1))


def _times(name: str, factor: float) -> PositionModel:
    model = _first_layer(name)
    for parameter in model.parameters():
        parameter.data *= factor
    return model


def test_a_difference_from_table_1_is_explained() -> None:
    quoted = {name: model.spec for name, model in MODELS.items() if model.spec.table1 is not None}
    other = {name for name, spec in quoted.items() if _marks(spec.table1) != _marks(spec.cells)}
    assert not {name for name in other if not quoted[name].note}, "they differ from Table 1 without a note"


def _marks(cells: Cells | None) -> Cells | None:
    return cells and replace(cells, params="")


def _terms(model: PositionModel, positions: Positions, layer: int = 0) -> Terms:
    return model.terms(model.prepare(positions), Site(layer))


def _attended(model: PositionModel, positions: Positions, n: int, *masks: Tensor) -> Tensor:
    """What attention gives for queries, keys and values that are the same for the last units of any text."""
    q, k, v = (noise(3, 2, 20, 4)[:, None, :, -n:]).unbind(0)
    return attend(q, k, v, _terms(model, positions) + Terms(mask=masks), "dense")


def _unbound(model: PositionModel, positions: Positions, size: int) -> bool:
    try:
        prepared = model.prepare(positions)
        x = model.inputs(torch.ones(1, size, 8, dtype=torch.float64), prepared)
        # Not the last two: where a path ends, a node has only one neighbour, which distinguishes it.
        before = _before_attention(model, prepared, Site(0), x)[0, -3:-1]
    except PositionError:
        return False
    if model.own_attention:
        return _apart(x[0, -3:-1]) or _block_tells_apart(model, prepared, size)
    q, k = noise(1, 2, 1, 4).expand(-1, -1, size, -1), noise(1, 2, 1, 4, seed=1).expand(-1, -1, size, -1)
    terms = model.terms(prepared, Site(0))
    # The first absolute places are near the origin; the last ones are far from it.
    looks = [(size - 1, (0, 1))] + [(0, (size - 3, size - 2))] * (model.spec.cells.reference != "R")
    return _apart(before) or all(_apart(_two(q, k, terms, *look)) for look in looks)


def _block_tells_apart(model: PositionModel, prepared: Any, size: int) -> bool:
    """Two queries of the same content in the middle, where no end of the path is near, or two far keys."""
    x = noise(1, 1, 8).expand(-1, size, -1).clone()
    middle = slice(size // 2, size // 2 + 2)
    if _apart(model.attend(x, prepared, Site(0), Terms())[0][0, middle]):
        return True
    x[:, -1] = noise(8, seed=1)
    places = torch.arange(size)
    masks = [((places == far) | (places == size - 1))[None, None, None] for far in (0, 1)]
    rows = [model.attend(x, prepared, Site(0), Terms(mask=(mask,)))[0][0, -1] for mask in masks]
    return _apart(torch.stack(rows))


def _two(q: Tensor, k: Tensor, terms: Terms, query: int, pair: tuple[int, int]) -> Tensor:
    """What a query gets from one key of a pair, with itself and without: either of them. All keys are equal."""
    places = torch.arange(k.shape[2])
    v = (places == query)[:, None].expand(1, k.shape[1], len(places), 4).double()
    masks = [(places == key) | (places == itself) for key in pair for itself in (key, query)]
    mask = torch.stack(masks)[:, None, None]
    rows = attend(*(x.expand(4, -1, -1, -1) for x in (q, k, v)), terms + Terms(mask=(mask,)))[:, :, query]
    return rows.unflatten(0, (2, 2)).flatten(1, 2)


def _apart(rows: Tensor) -> bool:
    return not torch.allclose(rows[0], rows[1], rtol=0, atol=1e-9)


# --- laws ---


@pytest.mark.parametrize("name", few(TERMS))
def test_every_kernel_means_what_dense_means(name: str) -> None:
    """Gradients of queries, keys and values too: that of x is their sum, by random weights."""
    expected, kernels = _values_and_gradients(name, "dense"), able(used_by(name))
    assert "dense" in kernels
    for kernel in set(kernels) - {"dense"}:
        for mine, dense in zip(_values_and_gradients(name, kernel), expected, strict=True):
            torch.testing.assert_close(mine, dense, rtol=1e-9, atol=1e-9, msg=lambda text, k=kernel: f"{k}: {text}")


def _values_and_gradients(name: str, kernel: str) -> list[Tensor | None]:
    model, x = kept(name), noise(3, 10, 8).requires_grad_()
    out = Around(model, kernel)(of_trees(name), x, present(TREES))
    whole = (out * noise(3, 10, 8, seed=1) * present(TREES)[:, 0, 0, :, None]).sum()
    return [out, *torch.autograd.grad(whole, [x, *model.parameters()], allow_unused=True)]


def test_a_kernel_that_cannot_names_what_it_lacks_and_those_that_can() -> None:
    """For each set of fields that a model fills in."""
    for fields, name in {used_by(name): name for name in TERMS}.items():
        unable = {kernel for kernel in KERNELS if not KERNELS[kernel].can(fields)}
        assert unable, "no kernel is beyond any model: 'linear' and 'edges' need fields that exclude each other"
        for kernel in unable:
            with pytest.raises(UnsupportedTerm) as caught:
                Around(made(name), kernel)(encoded(made(name), TREES), noise(3, 10, 8))
            for term in fields - KERNELS[kernel].supports or KERNELS[kernel].needs - fields:
                assert term in str(caught.value)
            assert str(caught.value).split("these can: ")[1].removesuffix(" (or 'auto')").split(", ") == able(fields)


@pytest.mark.parametrize("name", fewer(LEARNABLE))
def test_a_gradient_reaches_every_parameter_in_evaluation(name: str) -> None:
    _reaches_every_parameter(name, training=False)


@pytest.mark.parametrize("name", few(LEARNABLE))
def test_a_gradient_reaches_every_parameter(name: str) -> None:
    _reaches_every_parameter(name, training=True)


def _reaches_every_parameter(name: str, training: bool) -> None:
    model = made(name).train(training)
    # One tree with a virtual node, for parameters that only it uses.
    structures = [*TREES[:2], with_virtual_node(TREES[2])] if Feature("virtual", 0) in model.encodings else TREES
    structures = [*structures, *SYMMETRIC]
    out = Around(model)(encoded(model, structures), noise(5, 10, 8), present(structures))
    (out * noise(5, 10, 8, seed=1)).sum().backward()
    if not all(value.grad is None or value.grad.any() for value in model.parameters()):
        # A parameter of pairs without a path; not for all models, as some encodings are of trees only.
        out = Around(model)(encoded(model, [TWO_PARTS]), noise(1, 4, 8))
        (out * noise(1, 4, 8, seed=1)).sum().backward()
    for parameter, value in model.named_parameters():
        assert value.grad is not None, f"{name}: no gradient at {parameter}"
        assert value.grad.isfinite().all(), f"{name}: the gradient of {parameter} is not finite"
        assert value.grad.any(), f"{name}: the gradient of {parameter} is zero"


@together("name", few(CAUSAL))
@torch.no_grad()
def test_under_a_causal_mask_what_follows_changes_nothing(name: str) -> None:
    """Steps with a cache are thus the rows of the whole: for all kernels in the tests of the stack."""
    model, x = kept(name), noise(1, 9, 8)
    full = Around(model)(encoded(model, [labelled_path(9)]), x, causal(9))
    shorter = Around(model)(encoded(model, [labelled_path(6)]), x[:, :6], causal(6))
    torch.testing.assert_close(shorter, full[:, :6], rtol=0, atol=1e-9)


@together("name", few(NAMES))
@torch.no_grad()
def test_saved_and_loaded_it_is_the_same(name: str, tmp_path: Path) -> None:
    model, x = kept(name), noise(3, 10, 8)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    other = build(json.loads(json.dumps(describe(model))), DIMS).double().eval()
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert describe(other) == describe(model)
    assert other.encodings == model.encodings
    positions = of_trees(name)
    assert torch.equal(Around(other)(positions, x), Around(model)(positions, x))


@pytest.mark.parametrize("name", few(NAMES))
@torch.no_grad()
def test_numbering_the_nodes_otherwise_only_permutes(name: str) -> None:
    """No model counts units as they are stored: with an order, nodes in memory are in any sequence."""
    model = kept(name)
    for structure in TREES:
        new, units = relabelled(structure, np.arange(structure.size)[::-1])
        x, positions = noise(1, structure.unit_count, 8), encoded(model, [new])
        before, after = Around(model)(encoded(model, [structure]), x), Around(model)(positions, x[:, units])
        torch.testing.assert_close(after, before[:, units], rtol=0, atol=tolerance(positions))


@pytest.mark.parametrize("name", fewer(NAMES))
@torch.no_grad()
def test_half_precision_runs(name: str) -> None:
    rounded = made(name)
    for parameter in rounded.parameters():  # what is lost by that is not the model's doing
        parameter.data = parameter.data.bfloat16().double()
    exact = Around(rounded)(of_trees(name), noise(3, 10, 8), present(TREES))
    model = made(name).bfloat16()
    positions = encoded(model, TREES, torch.bfloat16)
    for kernel in ["dense"] if name in BLOCKS else able(used_by(name)):  # a block asks no kernel
        half = Around(model, kernel)(positions, noise(3, 10, 8).bfloat16(), present(TREES))
        assert half.dtype == torch.bfloat16
        assert half.isfinite().all()
        off = (half.double() - exact).abs().mean() / exact.abs().mean()
        assert off < 0.05, f"{name} in bfloat16 is off by {off:.1%} in {kernel}"


@pytest.mark.parametrize("registry", [MODELS, ENCODINGS], ids=lambda registry: registry.what)
def test_a_class_begins_with_its_title_and_its_formula(registry: Registry[type]) -> None:
    for name, cls in registry.items():
        title, blank, formula = (inspect.getdoc(cls) or "").split("\n")[:3]
        assert title.endswith("."), f"{name}: the first line is its title, which lists and pages show"
        assert not blank, f"{name}: a blank line follows the title"
        assert formula, f"{name}: the formula follows the title"
