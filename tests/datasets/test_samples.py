"""The samples of graphs of a usual size: formulas of drugs, and AMR graphs put together from another sample."""

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


def test_the_same_sentences_give_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "amr_sample").mkdir()
    (tmp_path / "long_amr_sample").mkdir()
    shutil.copy(SAMPLES / "amr_sample" / "train.txt", tmp_path / "amr_sample")
    spec = importlib.util.spec_from_file_location("make", SAMPLES / "long_amr_sample" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    make: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    make.HERE = tmp_path / "long_amr_sample"
    make.main()
    made = (tmp_path / "long_amr_sample" / "graphs.txt").read_bytes()
    assert made == (SAMPLES / "long_amr_sample" / "graphs.txt").read_bytes()
