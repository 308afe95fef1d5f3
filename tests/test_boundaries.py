"""Law: what takes encodings, a position model or structures takes them in every form, or says what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import TransformerConv

import structpe
from structpe.adapters import pyg, pytorch
from structpe.adapters.weights import load_authors
from structpe.data import store
from structpe.data.batch import Batch
from structpe.data.chunks import columns
from structpe.encodings import Distance
from structpe.errors import EncodingError, PositionError, StructPEError, StructureError, UnsupportedTerm
from structpe.formats import as_text
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.nn.language_model import LanguageModel
from structpe.nn.layer import StackConfig
from structpe.nn.seq2seq import EncoderDecoder, TransformerConfig
from structpe.nn.stack import Stack
from structpe.positions import Dims, build
from structpe.structure import path
from structpe.transforms import __all__ as TRANSFORMS
from tests.together import together

DIMS = Dims(8, 2, 1)
GRAPH = structpe.Structure(("a", "b"), np.array([[0, 1]]), ("ARG0",), order=np.arange(2), root=0)
CONFIG = StackConfig.transformer(DIMS, 8)
EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def encoded(encodings: Any) -> Any:
    """A graph of PyG with the distances."""
    return pyg.positions(
        pyg.AddEncoding(Distance(), {"name": "degree"})(Data(edge_index=EDGES, num_nodes=3)), encodings
    )


def stored(folder: Path, encodings: Any) -> Any:
    store.write(folder / "store", [GRAPH], ["distance"])
    return store.load(folder / "store", encodings)


OF_ENCODINGS: dict[str, Callable[[Any, Path], Any]] = {
    "encode": lambda given, _: structpe.encode([GRAPH], given),
    "Batch.of": lambda given, _: Batch.of([GRAPH], given),
    "columns": lambda given, _: columns([GRAPH], given),
    "write": lambda given, folder: store.write(folder / "store", [GRAPH], given),
    "load": lambda given, folder: stored(folder, given),
    "pyg.positions": lambda given, _: encoded(given),
    "AddEncoding": lambda given, _: pyg.AddEncoding(*given),
}
ENCODINGS: dict[str, Any] = {
    "itself": [Distance()],
    "name": ["distance"],
    "mapping": [{"name": "distance"}],
    "tuple": (Distance(),),
}
NO_ENCODINGS: dict[str, Any] = {
    "one": Distance(),
    "one name": "distance",
    "class": [Distance],
    "unknown": ["distanse"],
    "number": [3],
    "nothing": [None],
    "none": None,
    "option": [{"name": "distance", "max_distance": "3"}],
    "model": [build("t5", DIMS)],
}


@pytest.mark.parametrize("form", ENCODINGS)
@pytest.mark.parametrize("boundary", OF_ENCODINGS)
def test_encodings_are_taken_in_every_form(boundary: str, form: str, tmp_path: Path) -> None:
    assert OF_ENCODINGS[boundary](ENCODINGS[form], tmp_path) is not None


REFUSED = [
    (boundary, form)
    for boundary in OF_ENCODINGS
    for form, given in NO_ENCODINGS.items()
    if (boundary, form) != ("load", "none")  # all of them
    if boundary != "AddEncoding" or isinstance(given, list)  # is given one by one
]


@pytest.mark.parametrize(("boundary", "form"), REFUSED)
def test_what_are_no_encodings_is_explained(boundary: str, form: str, tmp_path: Path) -> None:
    with pytest.raises((EncodingError, PositionError), match="encoding"):
        OF_ENCODINGS[boundary](NO_ENCODINGS[form], tmp_path)


OF_MODELS: dict[str, Callable[[Any], Any]] = {
    "inject": lambda given: structpe.inject(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), given, start="own"),
    "inject into PyG": lambda given: structpe.inject(TransformerConv(8, 4, 2), given, start="own"),
    "Stack": lambda given: Stack(CONFIG, given),
    "LanguageModel": lambda given: LanguageModel(CONFIG, 5, given),
    "EncoderDecoder": lambda given: EncoderDecoder(
        TransformerConfig(width=8, heads=2, encoder_layers=1, decoder_layers=1, feedforward=8), 5, given, given
    ),
    "GraphModel": lambda given: GraphModel(
        GraphModelConfig(width=8, heads=2, layers=1, feedforward=8, message_passing=None),
        given,
        None,
        None,
        1,
    ),
}
BUILT_ONLY: dict[str, Callable[[Any], Any]] = {
    "additive_masks": lambda given: unwrap(pytorch.additive_masks)(
        given, structpe.encode([GRAPH], build("t5", DIMS).encodings)
    ),
    "load_authors": lambda given: load_authors(given, {}),
    "describe": structpe.positions.describe,
}
"""There are no sizes for which a model could be built."""
MODELS: dict[str, Callable[[], Any]] = {
    "itself": lambda: build("alibi", DIMS),
    "name": lambda: "alibi",
    "mapping": lambda: {"name": "t5", "num_buckets": 8},
    "list": lambda: ["alibi", {"name": "t5"}],
}
NO_MODELS: dict[str, Any] = {
    "unknown": "alibbi",
    "option": {"name": "t5", "sharing": "layerwise"},
    "class": structpe.positions.MODELS["t5"],
    "number": 3,
    "none": None,
    "encoding": Distance(),
}


@together("form", MODELS)
@together("boundary", OF_MODELS)
def test_position_models_are_taken_in_every_form(boundary: str, form: str) -> None:
    assert OF_MODELS[boundary](MODELS[form]()) is not None


@together("form", NO_MODELS)
@together("boundary", OF_MODELS)
def test_what_is_no_position_model_is_explained(boundary: str, form: str) -> None:
    with pytest.raises(PositionError, match=r"position model|'sharing'"):
        OF_MODELS[boundary](NO_MODELS[form])


@together("given", ["t5", {"name": "t5"}, None, 3])
@together("boundary", BUILT_ONLY)
def test_what_takes_only_built_models_says_so(boundary: str, given: Any) -> None:
    with pytest.raises(PositionError, match=r"build|has no name in the registry"):
        BUILT_ONLY[boundary](given)


OTHERS: dict[str, Callable[[], Any]] = {
    "text": lambda: "a b c",
    "networkx": lambda: networkx.path_graph(3),
    "none": lambda: None,
    "array": lambda: np.eye(3),
}
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "renumbered": (np.random.default_rng(0),),
    "subgraph": (np.arange(1),),
    "split": (str.split,),
    "product": (GRAPH,),
}


@together("other", OTHERS)
@together("name", sorted(set(TRANSFORMS) - {"grid"}))
def test_transforms_say_that_they_take_a_structure(name: str, other: str) -> None:
    with pytest.raises(StructureError, match=f"{name} takes a structure, not .*; structpe.as_structure makes"):
        getattr(structpe.transforms, name)(OTHERS[other](), *ARGUMENTS.get(name, ()))


OF_STRUCTURES: dict[str, Callable[[Any, Path], Any]] = {
    "encode": lambda given, _: structpe.encode([given], ["order"]),
    "Batch.of": lambda given, _: Batch.of([given], ["order"]),
    "columns": lambda given, _: columns([given], ["order"]),
    "store.write": lambda given, folder: store.write(folder / "store", [given], ["order"]),
    "write": lambda given, folder: structpe.write([given], folder / "out.amr"),
    "as_text": lambda given, _: as_text(given, "amr"),
    "convert": lambda given, _: structpe.convert(given, "networkx"),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("boundary", OF_STRUCTURES)
def test_what_is_no_structure_is_explained(boundary: str, other: str, tmp_path: Path) -> None:
    assert OF_STRUCTURES[boundary](GRAPH, tmp_path / "well" if boundary == "store.write" else tmp_path)
    with pytest.raises(StructPEError, match=r"structpe\.as_structure makes"):
        OF_STRUCTURES[boundary](OTHERS[other](), tmp_path)


def test_a_list_is_asked_for() -> None:
    for whose, call in {
        "encode": lambda: structpe.encode(GRAPH, ["order"]),  # type: ignore[arg-type]
        "Batch.of": lambda: Batch.of(GRAPH, ["order"]),  # type: ignore[arg-type]
        "write": lambda: structpe.write(GRAPH, "out.amr"),  # type: ignore[arg-type]
    }.items():
        with pytest.raises(StructPEError, match=f"{whose} takes a list of"):
            call()


def test_attention_takes_terms_and_padded_tensors() -> None:
    attend: Any = unwrap(structpe.attend)  # behind the tests' shape checks
    q, model = torch.randn(1, 2, 3, 4), build("t5", DIMS)
    for given in (model, "t5", {"name": "t5"}, [model]):
        with pytest.raises(StructPEError, match=r"attend takes Terms, and was given .*: model\.terms\(model\.prepare"):
            attend(q, q, q, given)  # type: ignore[arg-type]
    ragged = torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(2, 8)], layout=torch.jagged)
    with pytest.raises(StructPEError, match=r"attend was given a nested tensor.*to_padded_tensor.*attend_ragged"):
        attend(ragged, ragged, ragged)
    with pytest.raises(StructPEError, match="attend takes q, k and v as tensors; given is ndarray"):
        attend(np.zeros((1, 2, 3, 4)), q, q)  # type: ignore[arg-type]
    layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    structpe.inject(layer, "alibi", start="own")
    positions = structpe.encode([GRAPH, path(["a", "b"])], ["offset"])
    with pytest.raises(PositionError, match="the input is a nested tensor; pad it"):
        layer(ragged, structpe=positions)


def test_a_position_model_is_not_called() -> None:
    with pytest.raises(PositionError, match=r"'t5' is asked at its sites: prepared = model\.prepare"):
        build("t5", DIMS)(torch.randn(1, 3, 8))


def test_options_stand_with_their_encoding() -> None:
    with pytest.raises(EncodingError, match=r"AddEncoding\({'name': 'random-walk', 'steps': 4}\)"):
        pyg.AddEncoding("random-walk", steps=4)


def test_options_of_converters_are_checked() -> None:
    for call in (
        lambda: structpe.as_structure(networkx.path_graph(3), label=3),
        lambda: structpe.as_structure(Data(edge_index=EDGES, num_nodes=3), directed="no"),
        lambda: structpe.convert(GRAPH, "pyg", hetero="no"),
        lambda: structpe.convert(GRAPH, "pyg", heterro=True),
    ):
        with pytest.raises(structpe.StructPEError, match=r"option '.*' of converter .* takes|has no option named"):
            call()


@pytest.mark.parametrize("name", ["shaw", "rotary", "deberta"])
def test_what_is_no_mask_is_refused_before_the_first_pass(name: str) -> None:
    model = build(name, DIMS)
    with pytest.raises(UnsupportedTerm, match=r"acts by .* cannot be written as an additive mask"):
        OF_MODELS["inject into PyG"](model)


def test_asking_a_position_model_before_the_first_pass_changes_nothing() -> None:
    model = build("universal", DIMS)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    layer, state = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), torch.get_rng_state()
    structpe.inject(layer, model, start="own")
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
