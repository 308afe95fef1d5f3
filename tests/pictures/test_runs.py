"""What trained models do, from the folders of their runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from structpe.errors import StoreError
from structpe.formats import Item, read
from structpe.pictures import PictureError, load, show
from structpe.pictures.head_patterns import Patterns
from structpe.pictures.view import view
from structpe.positions import Site
from structpe.positions.batch import encode
from structpe.terms import Lookup
from tests.pictures.cases import ASPIRIN
from tests.pictures.runs import predicted, written
from tests.tasks.graph_to_text.tiny import AMR

ITEM = read(AMR / "test.txt", "amr")[2]
T5 = {"name": "t5", "encoding": "distance"}


@pytest.fixture(scope="module")
def text_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def graph_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return predicted(tmp_path_factory.mktemp("graphs"), T5)


def patterns(folder: Path, item: Item, content: str = "same") -> Patterns:
    found = load(folder, item, content).patterns  # type: ignore[arg-type]
    assert found is not None
    return found


def test_the_bias_is_that_of_the_weights(text_run: Path) -> None:
    found = load(text_run, ITEM)
    positions = encode([found.structure], found.position.encodings)
    (bias,) = found.position.terms(found.position.prepare(positions), Site(0)).bias
    assert found.patterns is not None
    assert isinstance(bias, Lookup)
    torch.testing.assert_close(found.patterns.bias, bias.dense().movedim(3, 1))
    table = load_file(text_run / "model.safetensors")["encoder.position.table.weight"]
    same = found.patterns.bias[0, 0].diagonal()  # type: ignore[index]
    assert same.unique().numel() == 1
    assert torch.isin(same[0].float(), table)


def test_the_structure_is_as_the_run_reads_it(text_run: Path) -> None:
    found = load(text_run, ITEM)
    assert found.structure.size > ITEM.structure.size, "relations are nodes"
    assert found.structure.units is not None
    assert view(ITEM.structure, [found]).structure is found.structure


def test_content_makes_a_difference_to_attention_and_none_to_the_bias(text_run: Path) -> None:
    same, own = patterns(text_run, ITEM), patterns(text_run, ITEM, "own")
    assert torch.equal(same.bias, own.bias)  # type: ignore[arg-type]
    assert not torch.allclose(same.attention, own.attention)
    expected = torch.softmax(same.bias, dim=-1)  # type: ignore[arg-type]
    torch.testing.assert_close(same.attention, expected, rtol=0, atol=1e-9)
    title = view(ITEM.structure, [load(text_run, ITEM, "own")], "attention").said
    assert title == f"t5 trained, {text_run}: attention; units of their own content"


def test_own_content_is_what_the_model_computes(text_run: Path) -> None:
    """Attention of the first layer, written out from embeddings and weights."""
    from structpe.tasks.runs.text import GraphToTextRun

    model, preparer = GraphToTextRun.of(text_run).load()
    (example,) = preparer.examples([ITEM], model.encoder.position.encodings)
    batch = preparer.collate([example])
    with torch.no_grad():
        x = model.encoder.layers[0].attention_norm(model.embedding(batch.x) * 16**0.5)[None]  # type: ignore[operator,index]
        layer = model.encoder.layers[0].attention
        q, k = layer.query(x), layer.key_value(x)[..., :16]  # type: ignore[operator,union-attr]
        q, k = (each.view(1, -1, 2, 8).transpose(1, 2) for each in (q, k))
        found = patterns(text_run, ITEM, "own")
        scores = q @ k.mT / 8**0.5 + found.bias.float()  # type: ignore[union-attr]
    torch.testing.assert_close(found.attention.float(), torch.softmax(scores, -1), rtol=0, atol=1e-5)


def test_a_run_of_prediction(graph_run: Path) -> None:
    found = load(graph_run, Item(ASPIRIN))
    assert found.patterns is not None
    assert found.patterns.attention.shape == (2, 2, ASPIRIN.size, ASPIRIN.size)
    expected = torch.softmax(found.patterns.bias[0], dim=-1)  # type: ignore[index]
    torch.testing.assert_close(found.patterns.attention[0], expected, rtol=0, atol=1e-5)
    show(ASPIRIN, [found])


def test_models_without_heads_to_show(tmp_path: Path) -> None:
    for name in ("own", "none"):
        (tmp_path / name).mkdir()
    own = predicted(tmp_path / "own", "grit")
    assert load(own, Item(ASPIRIN)).patterns is None
    assert "grit has its own attention" in view(ASPIRIN, [load(own, Item(ASPIRIN))]).notes[0]
    none = predicted(tmp_path / "none", [], attention=None)
    with pytest.raises(PictureError, match="holds a model without attention, whose layers pass messages only"):
        load(none, Item(ASPIRIN))


def test_runs_that_are_none_of_these(graph_run: Path, text_run: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"holds no config.yaml; give the folder of a run"):
        load(tmp_path, ITEM)
    (tmp_path / "config.yaml").write_text("a: 1\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"holds no files of a run of graph-to-text .*position\.json"):
        load(tmp_path, ITEM)
    with pytest.raises(
        PictureError, match="holds a run of prediction, which has learned the features of its benchmark"
    ):
        load(graph_run, ITEM, "own")
    for run in (graph_run, text_run):
        copy = tmp_path / run.parent.name
        shutil.copytree(run, copy)
        (copy / "model.safetensors").write_bytes(b"damaged")
        with pytest.raises(StoreError, match="the file is damaged"):
            load(copy, ITEM)
        (copy / "model.safetensors").unlink()
        with pytest.raises(StoreError, match=r"holds no model.safetensors; training writes it at the first validation"):
            load(copy, ITEM)
