"""Mistakes in a user's own position model: each raises an error that says what to do."""

from __future__ import annotations

import copy
import pickle
import pydoc
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import structpe
from structpe.encodings import Order
from structpe.errors import PositionError, StructPEError
from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.positions import MODELS, Cells, Dims, PositionModel, Site, Spec, build
from structpe.positions.base import spec_of
from structpe.positions.build import describe
from structpe.terms import Terms
from tests.positions.slips import DIMS, GRAPH, TERMS, own, said, through_a_layer
from tests.together import together

ORDER = Order()


@pytest.fixture(autouse=True)
def forgetting() -> Iterator[None]:
    """What a test registers goes again."""
    known = set(MODELS)
    yield
    for name in set(MODELS) - known:
        MODELS.forget(name)


@together("name", TERMS)
def test_terms(name: str) -> None:
    change, message = TERMS[name]
    found = said(change)
    assert re.match(r"(PositionError|StructPEError): ", found)
    assert re.search(message, found), found


SITES: dict[str, tuple[str, Callable[..., Any], str]] = {
    "none": ("inputs", lambda self, x, p: None, r"'Own': inputs gives None, and must give a tensor \(b, n, d\)"),
    "fewer": (
        "inputs",
        lambda self, x, p: x[:, :2],
        r"inputs gives shape \(1, 2, 8\); it must be that of the units, .* = \(1, 3, 8\)",
    ),
    "wider": ("layer", lambda self, x, p, site: torch.cat([x, x], -1), r"layer gives shape \(1, 3, 16\)"),
    "table": (
        "inputs",
        lambda self, x, p: x + torch.zeros(2, 8)[p[ORDER]],
        r"'Own': inputs looks up a row that is not there \(index 2 is out of bounds",
    ),
    "embedding": (
        "inputs",
        lambda self, x, p: x + functional.embedding(p[ORDER], torch.zeros(2, 8)),
        r"\(index out of range in self\)",
    ),
    "real": ("inputs", lambda self, x, p: x + torch.zeros(9, 8)[p[ORDER].float()], "looks up a row that is not there"),
    "number": (
        "inputs",
        lambda self, x, p: x + p[0],
        r"look positions up by the encoding itself, such as prepared\[self.encodings\[0\]\]; given is 0",
    ),
    "sources": (
        "sources",
        lambda self, s, p, site: (s.query, s.key, s.value),
        "sources gives tuple, and must give Sources",
    ),
}


@pytest.mark.parametrize(("site", "method", "message"), SITES.values(), ids=SITES)
def test_other_sites(site: str, method: Callable[..., Any], message: str) -> None:
    with pytest.raises(PositionError, match=message):
        through_a_layer(own(ORDER, **{site: method}))


def test_other_errors_are_unchanged() -> None:
    """An error that does not come from the use of the library is left to Python, with its line."""
    with pytest.raises(KeyError, match="mine"):
        through_a_layer(own(terms=lambda self, p, site: {}["mine"]))


def test_prepare_that_gives_nothing() -> None:
    cls = own(prepare=lambda self, positions: None, terms=lambda self, p, site: Terms(bias=(p.map(abs),)))
    with pytest.raises(PositionError, match="its prepare gives None, so that terms has nothing to read"):
        through_a_layer(cls)


def test_no_model_of_ours_takes_positions_for_what_is_prepared() -> None:
    """``terms(positions)``, where a model prepares: an error that says so, for every model of the library."""
    tried = 0
    for name, cls in MODELS.items():
        if cls.prepare is PositionModel.prepare:
            continue
        try:
            model = build(name, Dims(8, 2, 1))
            positions = structpe.encode([GRAPH], model.encodings)
        except StructPEError:  # it needs other sizes, or more than a path
            continue
        x = torch.zeros(1, 3, 8)
        calls = {"terms": (positions, Site(0)), "inputs": (x, positions), "layer": (x, positions, Site(0))}
        for site in model.sites & set(calls):
            with pytest.raises(PositionError, match=f"{site} was given positions, and takes what prepare makes"):
                getattr(model, site)(*calls[site])
            tried += 1
    assert tried > 40


@pytest.mark.parametrize("given", [GRAPH, [GRAPH], None, "a b"])
def test_prepare_takes_positions(given: Any) -> None:
    with pytest.raises(PositionError, match=r"prepare takes positions, and was given .*; encode first: model.prepare"):
        build("t5", DIMS).prepare(given)


def test_a_sum_takes_what_it_prepared() -> None:
    model = build(["t5", "alibi"], DIMS)
    with pytest.raises(PositionError, match=r"a sum of position models takes the list .* given is Positions"):
        model.terms(structpe.encode([GRAPH], model.encodings), Site(0))


def test_a_site_is_no_number() -> None:
    model = build({"name": "t5", "sharing": "none"}, DIMS)
    with pytest.raises(PositionError, match=r"terms takes a Site, Site\(layer=0\) say; given is 0"):
        model.terms(model.prepare(structpe.encode([GRAPH], model.encodings)), 0)  # type: ignore[arg-type]


BEGINNINGS: dict[str, tuple[Callable[..., None], str]] = {
    "nothing": (lambda self, dims: setattr(self, "a", 3), r"Own.__init__ does not call super\(\).__init__\(dims, \["),
    "parameter": (lambda self, dims: setattr(self, "a", nn.Parameter(torch.zeros(1))), "add it as its first line"),
    "module": (lambda self, dims: nn.Module.__init__(self), r"does not call super\(\).__init__"),
    "single": (
        lambda self, dims: PositionModel.__init__(self, dims, ORDER),
        r"takes a list of encodings, .* given is Order\(\)",
    ),  # type: ignore[arg-type]
    "names": (lambda self, dims: PositionModel.__init__(self, dims, ["order"]), r"given is \['order'\]"),  # type: ignore[list-item]
    "classes": (lambda self, dims: PositionModel.__init__(self, dims, [Order]), "takes a list of encodings"),  # type: ignore[list-item]
    "dims": (
        lambda self, dims: PositionModel.__init__(self, (8, 2, 1), []),
        r"built for sizes, Dims\(width, heads, layers\); given is \(8, 2, 1\)",
    ),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("init", "message"), BEGINNINGS.values(), ids=BEGINNINGS)
def test_constructors(init: Callable[..., None], message: str) -> None:
    with pytest.raises(PositionError, match=message):
        own(__init__=init)(DIMS)  # type: ignore[call-arg]


@pytest.mark.parametrize("given", ["8", 8.0, True, None])
def test_sizes_are_whole_numbers(given: Any) -> None:
    with pytest.raises(PositionError, match="option 'width' of Dims takes a whole number; given is"):
        Dims(given, 1, 1)


def test_a_name_that_is_taken_is_an_error_when_the_class_is_defined() -> None:
    with pytest.raises(
        PositionError, match=r"two position models are named 't5': structpe.positions.buckets.T5 and .*Other; ren"
    ):

        class Other(PositionModel, name="t5"):
            pass

    with pytest.raises(PositionError, match=r"the name of .*Third is 3; give a text, such as name=\"own-model\""):

        class Third(PositionModel, name=3):  # type: ignore[arg-type]
            pass


class TestWithoutSpec:
    """A class needs no row of Table 1 before its first experiment."""

    @pytest.fixture
    def model(self) -> PositionModel:
        class Bare(PositionModel, name="bare-of-a-test"):
            def __init__(self, dims: Dims, size: int = 2) -> None:
                super().__init__(dims, [ORDER])
                self.vector = nn.Parameter(torch.zeros(dims.width))

            def inputs(self, x: Tensor, prepared: Any) -> Tensor:
                return x + self.vector

        return build({"name": "bare-of-a-test", "size": 3}, DIMS)

    def test_it_is_built_described_and_added(self, model: PositionModel) -> None:
        assert describe(model) == {"name": "bare-of-a-test", "size": 3}
        assert describe(model + build("alibi", DIMS))[0] == describe(model)
        assert spec_of(type(model)) is None
        assert copy.deepcopy(model).options() == {"size": 3}
        assert "Bare" in pydoc.render_doc(type(model))

    def test_it_works_in_a_transformer(self, model: PositionModel) -> None:
        encoder = Stack(StackConfig.transformer(DIMS, 16), model)
        encoder.padded(torch.randn(1, 3, 8), structpe.encode([GRAPH], [ORDER])).sum().backward()
        assert model.vector.grad is not None

    @pytest.mark.parametrize(
        "use", [lambda m: m.spec, lambda m: type(m).spec, lambda m: m.claimed_params(), structpe.cite]
    )
    def test_a_missing_spec_is_an_error_where_it_is_needed(self, model: PositionModel, use: Callable[..., Any]) -> None:
        with pytest.raises(
            PositionError, match=r"Bare has no Spec, its row of Table 1, .* spec = Spec\(cite, structure, Cells"
        ):
            use(model)

    def test_a_library_model_has_one(self) -> None:
        assert all(spec_of(cls) is cls.spec for cls in MODELS.values())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cells("Q", "MAM", True, True, True, "0"), "the reference of a Spec is 'Q'; give one of A, R, B"),
        (lambda: Cells("A", "bias", True, True, True, "0"), "the injection of a Spec is 'bias'; give one of APE, MAM"),
        (lambda: Spec("x", "text", Cells("A", "MAM", True, True, True, "0")), "the structure of a Spec is 'text'"),
    ],
)
def test_cells_are_the_survey_s(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(PositionError, match=message):
        make()


def test_a_formula_that_cannot_be_evaluated() -> None:
    cls = own(spec=Spec("x", "graph", Cells("A", "-", False, False, True, "q*9")))  # type: ignore[arg-type]
    with pytest.raises(
        PositionError, match=r"formula of parameters 'q\*9' cannot be evaluated .* may use d, h, l, dh; give further"
    ):
        cls(DIMS).claimed_params()  # type: ignore[call-arg]


def test_free_options_are_options_too() -> None:
    class Free(PositionModel, name="free-of-a-test"):
        def __init__(self, dims: Dims, **sizes: int) -> None:
            super().__init__(dims, [], **sizes)

    model = build({"name": "free-of-a-test", "reach": 3}, DIMS)
    assert describe(model) == {"name": "free-of-a-test", "reach": 3}
    with pytest.raises(
        PositionError, match="option 'reach' of position model 'free-of-a-test' takes a whole number; given is 'x'"
    ):
        build({"name": "free-of-a-test", "reach": "x"}, DIMS)


def test_a_model_or_a_class_is_no_plain_data() -> None:
    cls = own()
    with pytest.raises(PositionError, match=r"was given a position model; use Own\(dims\)"):
        build(cls, DIMS)  # type: ignore[arg-type]
    with pytest.raises(PositionError, match="use the model itself"):
        build(cls(DIMS), DIMS)  # type: ignore[arg-type, call-arg]


def test_models_are_pickled_as_before() -> None:
    model = build("t5", DIMS)
    again = pickle.loads(pickle.dumps(model))
    assert describe(again) == describe(model)
    assert build.__doc__
