"""Samples that are made by a program or have laws of their own: drugs, long AMR graphs, and who did what."""

from __future__ import annotations

import importlib.util
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import structpe
from tests.datasets import SAMPLES


def test_formulas_of_drugs_are_those_of_their_smiles() -> None:
    pytest.importorskip("rdkit")
    from rdkit.Chem import MolFromSmiles
    from rdkit.Chem.rdMolDescriptors import CalcMolFormula

    items = list(structpe.read(SAMPLES / "drugs_sample" / "molecules.csv"))
    assert len({item.metadata["name"] for item in items}) == len(items) == 64
    for item in items:
        assert CalcMolFormula(MolFromSmiles(item.metadata["smiles"])) == item.metadata["formula"], item.metadata["name"]
    assert all(15 <= item.structure.size <= 40 for item in items)
    assert 25 <= sum(item.structure.size for item in items) / len(items) <= 26


def test_long_graphs_are_those_of_their_sentences() -> None:
    short = {item.texts[0]: item.structure for item in structpe.read(SAMPLES / "amr_sample" / "train.txt")}
    items = list(structpe.read(SAMPLES / "long_amr_sample" / "graphs.txt"))
    used: Counter[str] = Counter()
    for item in items:
        words = [sentence for sentence in short if sentence in item.texts[0]]
        found = Counter(item.structure.nodes)
        expected = Counter(node for sentence in words for node in short[sentence].nodes) + Counter(["multi-sentence"])
        assert found == expected
        edges = sum(len(short[sentence].edges) for sentence in words) + len(words)  # and those of :snt1, ...
        assert len(item.structure.edges) == edges
        assert 55 <= item.structure.size <= 65
        used.update(words)
    assert len(items) == 64
    assert set(used.values()) == {1}


def program(sample: str) -> Any:
    """``make.py`` of a sample."""
    spec = importlib.util.spec_from_file_location("make", SAMPLES / sample / "make.py")
    assert spec is not None
    assert spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    return make


def test_the_same_sentences_give_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "amr_sample").mkdir()
    (tmp_path / "long_amr_sample").mkdir()
    shutil.copy(SAMPLES / "amr_sample" / "train.txt", tmp_path / "amr_sample")
    make = program("long_amr_sample")
    make.HERE = tmp_path / "long_amr_sample"
    make.main()
    made = (tmp_path / "long_amr_sample" / "graphs.txt").read_bytes()
    assert made == (SAMPLES / "long_amr_sample" / "graphs.txt").read_bytes()


def test_the_same_schemes_give_the_same_bytes(tmp_path: Path) -> None:
    program("roles_sample").main(tmp_path)
    for split in ("train", "dev", "test"):
        assert (tmp_path / f"{split}.txt").read_bytes() == (SAMPLES / "roles_sample" / f"{split}.txt").read_bytes()


def test_a_bag_of_concepts_does_not_say_who_did_what() -> None:
    """Each two sentences that are held out have the same nodes and labels of edges, and are different graphs."""
    read = {split: list(structpe.read(SAMPLES / "roles_sample" / f"{split}.txt")) for split in ("train", "dev", "test")}
    seen = {item.texts[0] for item in read["train"]}
    assert len(seen) == len(read["train"])
    for split in ("dev", "test"):
        for one, other in zip(read[split][::2], read[split][1::2], strict=True):
            first, second = one.structure, other.structure
            assert sorted(first.nodes) == sorted(second.nodes)
            assert sorted(first.relations) == sorted(second.relations)
            assert edges(first) != edges(second)
            assert one.texts[0] != other.texts[0]
            assert not {one.texts[0], other.texts[0]} & seen
    said = {(role, label) for item in read["train"] for _, role, label in edges(item.structure)}
    assert {(role, label) for item in read["test"] for _, role, label in edges(item.structure)} <= said


def edges(structure: structpe.Structure) -> set[tuple[str, str, str]]:
    """Edges by the labels of their ends: no concept is twice in a graph of this sample."""
    named = zip(structure.edges.tolist(), structure.relations, strict=True)
    return {(structure.nodes[source], role, structure.nodes[target]) for (source, target), role in named}
