"""Position models from plain data and back."""

from __future__ import annotations

import copy
import json
import pickle
import re
from typing import Any

import pytest
import torch

import structpe.positions
from structpe.encodings.distance import Distance
from structpe.encodings.label_path import LabelPath
from structpe.encodings.order import Offset, Order, Window
from structpe.encodings.trees import BranchPath
from structpe.errors import EncodingError, PositionError
from structpe.formats import tree
from structpe.positions import MODELS, Cells, Dims, PositionModel, Spec, Sum, build, describe, list_models
from structpe.positions.batch import encode
from structpe.positions.buckets import T5
from structpe.positions.build import fitted
from structpe.structure import path
from tests.representatives import few
from tests.together import together

DIMS = Dims(8, 2, 3)


@pytest.mark.parametrize(
    ("config", "encoding", "rows"),
    [
        ("t5", Offset(), 32),
        ({"name": "t5"}, Offset(), 32),
        ({"name": "t5", "encoding": "distance"}, Distance(), 32 + 1 + 17),
        (
            {"name": "t5", "encoding": {"name": "distance", "max_distance": 8}, "num_buckets": 16},
            Distance(max_distance=8),
            16 + 1 + 17,
        ),
        (
            {"name": "t5", "encoding": Distance(max_distance=8), "num_buckets": 16},
            Distance(max_distance=8),
            16 + 1 + 17,
        ),
    ],
)
def test_from_plain_data(config: Any, encoding: Any, rows: int) -> None:
    model = build(config, DIMS)
    assert isinstance(model, T5)
    assert model.encodings == (encoding,)
    assert model.sizes["R"] == rows


def test_a_list_is_a_sum() -> None:
    model = build(["sinusoidal", {"name": "t5", "encoding": "distance"}, ["rotary"]], DIMS)
    assert isinstance(model, Sum)
    assert [describe(m) if isinstance(m, Sum) else m.name for m in model] == [
        "sinusoidal",
        "t5",
        [describe(build("rotary", DIMS))],
    ]
    assert describe(build(describe(model), DIMS)) == describe(model)
    assert describe(build([], DIMS)) == []


def test_description_is_whole_and_plain() -> None:
    model = build({"name": "t5", "encoding": {"name": "distance", "max_distance": 8}, "sharing": "none"}, DIMS)
    assert json.loads(json.dumps(describe(model))) == {
        "name": "t5",
        "encoding": {"name": "distance", "max_distance": 8},
        "num_buckets": 32,
        "max_distance": 128,
        "sharing": "none",
    }


def test_an_encoding_that_may_be_absent() -> None:
    given = {"name": "tpe-onehot", "encoding": {"name": "branch-path", "depth": 2, "width": 3, "binary": False}}
    assert build(given, DIMS).encodings == (BranchPath(2, 3),)
    assert describe(build(given, DIMS)) == given
    assert describe(build({"name": "tpe-onehot"}, DIMS)) == {"name": "tpe-onehot", "encoding": None}


@together("name", few(sorted(MODELS)))
def test_copies_and_pickles_keep_what_they_were_built_with(name: str) -> None:
    model = MODELS[name](DIMS)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert describe(other) == describe(model)


NAMED = "a position model is described by its name, by a mapping with 'name' and options, or by a list of these; given "
REFUSED = [
    ("t55", r"there is no position model named 't55'. Did you mean 't5'\? Nearest of \d+: t5, "),
    (
        {"name": "t5", "bucket": 3},
        r"position model 't5' has no option named 'bucket'. Did you mean 'num_buckets'\? "
        r"Known: encoding, num_buckets, max_distance, sharing$",
    ),
    ({"name": "t5", "dims": 3}, r"position model 't5' has no option named 'dims'"),
    (
        {"name": "t5", "num_buckets": "many"},
        r"option 'num_buckets' of .* 't5' takes a whole number; given is 'many'$",
    ),
    (
        {"name": "t5", "num_buckets": True},
        r"option 'num_buckets' of position model 't5' takes a whole number; given is True$",
    ),
    ({"name": "t5", "sharing": "some"}, r"takes one of 'none', 'head-wise', 'layer-wise', 'both'; given is 'some'"),
    ({"name": "rotary", "base": "1"}, r"option 'base' of position model 'rotary' takes a number; given is '1'$"),
    (
        {"name": "t5", "encoding": "distanz"},
        r"option 'encoding' of position model 't5': there is no encoding named 'distanz'. Did you mean 'distance'\?",
    ),
    (
        {"name": "t5", "encoding": {"name": "distance", "max_distances": 3}},
        r"encoding 'distance' has no option named 'max_distances'. Did you mean 'max_distance'\? Known: max_distance$",
    ),
    (
        {"name": "t5", "encoding": {"name": "distance", "max_distance": "3"}},
        r"option 'max_distance' of encoding 'distance' takes a whole number or null; given is '3'$",
    ),
    (
        {"name": "t5", "encoding": 4},
        r"option 'encoding' of position model 't5', an encoding, is described by its name, .* given is 4$",
    ),
    ({"name": "t5", "encoding": "order"}, r"'t5' needs an encoding of pairs of units .*; 'order' is not one"),
    ({"name": "tpe", "encoding": "depth"}, r"takes an encoding of the class BranchPath; 'depth' is not one"),
    (3, NAMED + "is 3$"),
    ({"num_buckets": 3}, NAMED + r"is \{'num_buckets': 3\}$"),
    (["t5", None], NAMED + "is None$"),
]


@together(("config", "message"), REFUSED)
def test_what_cannot_be_built(config: Any, message: str) -> None:
    with pytest.raises(PositionError, match=message):
        build(config, DIMS)


def test_an_option_without_a_type_cannot_be_checked() -> None:
    class Loose(PositionModel, name="loose"):
        spec = Spec("mine", "sequence", Cells("R", "-", False, False, False, "0"))

        def __init__(self, dims, encoding=Offset()):  # type: ignore[no-untyped-def]
            super().__init__(dims, [encoding])

    try:
        assert build("loose", DIMS).encodings == (Offset(),)
        with pytest.raises(PositionError, match=r"option 'encoding' of .* 'loose' has no type hint.*annotate"):
            build({"name": "loose", "encoding": "distance"}, DIMS)
    finally:
        MODELS.forget("loose")


def test_an_int_is_a_float() -> None:
    assert build({"name": "rotary", "base": 500}, DIMS).options()["base"] == 500


def test_a_model_without_a_name_cannot_be_described() -> None:
    class Mine(PositionModel):
        spec = Spec("mine", "sequence", Cells("A", "-", False, False, False, "0"))

    with pytest.raises(PositionError, match=r"Mine has no name.*class Mine\(PositionModel, name=\.\.\.\)"):
        describe(Mine(DIMS, []))


def test_every_class_can_be_imported_from_the_package() -> None:
    for name, cls in MODELS.items():
        assert getattr(structpe.positions, cls.__name__) is cls, name
        assert cls.__name__ in dir(structpe.positions)


def test_no_two_classes_share_a_name() -> None:
    assert len({cls.__name__ for cls in MODELS.values()}) == len(MODELS)


def test_an_unknown_class() -> None:
    with pytest.raises(AttributeError, match=r"no position model class named 'Graphormers'"):
        _ = structpe.positions.Graphormers


PARSE = tree(["a", "b", "c"], [2, 0, 2], ["det", "root", "obj"])


@pytest.mark.parametrize("config", ["zhu-sum", "alibi", [{"name": "zhu-sum", "in_layers": [1]}, "alibi"]])
def test_fitted_to_structures_it_is_what_its_description_says(config: Any) -> None:
    """Labels are learned, also by a part of a sum; a model without an encoding that learns is as it would be."""
    model = build(config, DIMS, fit=[PARSE])
    assert describe(model) == fitted(config, DIMS, lambda: [PARSE])
    learned = [e.labels for e in model.encodings if isinstance(e, LabelPath)]
    assert learned == ([] if config == "alibi" else [("det", "obj")])
    encode([PARSE], model.encodings)


LEARNERS = "cai complex dwivedi-wl exphormer graph-bert graph-bert-survey graphormer graphormer-3d graphormer-gd"
LEARNERS += " graphormer-gps graphormer-simple zhu-avg zhu-cnn zhu-feature zhu-self zhu-sum"
WITHOUT = "exphormer graphormer-3d"
"""Models that learn from structures, and those of them that take what they have not seen before anything is learned."""


def test_models_that_learn_are_these() -> None:
    learners = {name for name in MODELS if any(each.learns for each in build(name, DIMS).encodings)}
    assert learners == set(LEARNERS.split())


@together("name", LEARNERS.split())
def test_an_error_about_what_was_not_fitted_has_a_line_to_paste(name: str) -> None:
    """Each line of the error is run as it is."""
    model, dims, structures = build(name, DIMS), DIMS, [PARSE]
    if name in WITHOUT.split():
        encode(structures, model.encodings)
        return
    with pytest.raises(EncodingError, match=r"(yet|equal); fit") as error:
        encode(structures, model.encodings)
    around = {"structpe": structpe, "name": name, "dims": dims, "structures": structures, "model": model}
    (line,) = re.findall(r" (model = .+?), as", str(error.value))
    exec(line, around)
    encode(structures, around["model"].encodings)
    (call,) = re.findall(r"as (structpe\.build\(.+?\)) does", str(error.value))
    assert describe(eval(call, around)) == describe(around["model"])
    (line,) = re.findall(r"(encoding = .+)$", str(error.value))
    for encoding in model.encodings:
        around["encoding"] = encoding
        exec(line, around)
        encode(structures, [around["encoding"]])


def test_only_structures_can_be_learned_from() -> None:
    with pytest.raises(EncodingError, match="fit takes a list of structures"):
        build("zhu-sum", DIMS, fit=PARSE)  # type: ignore[arg-type]  # one structure
    with pytest.raises(EncodingError, match="fit takes a list of structures"):
        build("zhu-sum", DIMS).fit([])


@pytest.mark.parametrize("name", ["graphormer", "graphormer-gd", "graphormer-gps", "graphormer-simple", "zhu-cnn"])
def test_a_graph_without_labels_needs_no_fit(name: str) -> None:
    bare = structpe.Structure(tuple("abcd"), [(0, 1), (2, 1), (2, 3)])
    model = build(name, DIMS)
    assert describe(model) == describe(model.fit([bare]))
    assert encode([bare], model.encodings)[model.encodings[1 if name != "zhu-cnn" else 0]] is not None


def test_models_are_listed_by_patterns() -> None:
    assert list_models() == sorted(MODELS)
    assert list_models("T5*") == ["t5", "t5-causal", "t5-unshared"]
    assert list_models("[ab]l?bi") == ["alibi"]
    assert list_models("nothing") == []


def test_what_is_printed_has_sizes_options_and_shapes() -> None:
    printed = repr(build({"name": "t5", "num_buckets": 16, "encoding": "distance"}, DIMS))
    assert printed.startswith(f"T5(\n  {DIMS}, encoding=Distance(max_distance=None), num_buckets=16, ")
    assert f"{DIMS}, in_layers=[None, (1,)]" in repr(build(["alibi", {"name": "t5", "in_layers": [1]}], DIMS))
    many = tree(list("abcdefghij"), list(range(10)), [f"label-{i}" for i in range(10)])
    assert all(len(line) < 250 for line in repr(build("zhu-sum", DIMS, fit=[many])).splitlines())
    positions = encode([PARSE, PARSE], [Order(), Distance(), Window(max_distance=1)])
    assert repr(positions) == (
        "Positions(Order(): Tensor (2, 3), Distance(max_distance=None): Lookup (2, 3, 3) of 4 values, "
        "Window(max_distance=1): SparsePairs (14,) of 3 values)"
    )


def test_an_encoding_is_told_from_a_model() -> None:
    with pytest.raises(PositionError, match=r"'laplacian' is an encoding; give it to .*'encoding': 'laplacian'\}"):
        build("laplacian", Dims(8, 2, 1))


def test_vectors_of_another_width_are_told() -> None:
    model = build("rwse", Dims(8, 2, 1))
    positions = encode([path(["a", "b"])], model.encodings)
    with pytest.raises(
        PositionError, match=r"'rwse': inputs takes vectors \(b, n, 8\), and was given shape \(1, 2, 6\)"
    ):
        model.inputs(torch.zeros(1, 2, 6), model.prepare(positions))
