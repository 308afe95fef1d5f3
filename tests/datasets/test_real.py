"""What real corpora the cards describe, where they are at hand: taken, verified, read, and counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from structpe.datasets import get, verify
from tests.datasets import corpus
from tests.representatives import only

WHOLE = {
    **dict.fromkeys(("actor", "minesweeper", "tolokers"), "hetero"),
    **dict.fromkeys(("citeseer", "cora"), "planetoid"),
    **{name: f"expressivity/{name}" for name in ("brec", "csl", "exp")},
    **{"umls": "kg/umls", "nations": "kg/nations", "wn18rr": "kg/WN18RR", "zinc12k-stand-in": "zinc12k"},
    **{"tu-mutag": "tu/MUTAG", "tu-ptc": "tu/PTC", "tu-enzymes": "tu/ENZYMES", "tu-imdb-binary": "tu/IMDBBINARY"},
    **{"tu-proteins": "tu/PROTEINS", "ud-czech-cltt": "ud"},
}
"""Sets of which every file is at hand, and in which folder."""

LARGE = {
    "cogs": ("cogs", "dev"),
    "little-prince": ("amr/little_prince", "v1.6-test"),
    "molhiv-rebuilt": ("molecules", None),
    "peptides-func": ("peptides_func", None),
    "sst": ("sst_trees", "dev"),
    "tu-nci1": ("tu/NCI1", None),
    "ud-afrikaans-afribooms": ("ud", "dev"),
    "ud-english-ewt": ("ud", "dev"),
    "webnlg-2017": ("webnlg", "test-unseen"),
}
"""Likewise; of these one split is read. `structpe data verify NAME --read` reads all, in minutes."""

PARTS = {
    "agenda": ("agenda", ("dev", "test"), "dev"),
    "bio-amr": ("amr/bio", ("dev",), "dev"),
    "listops-published": ("listops", ("test",), None),
    "moleculenet": ("molecules", ("esol", "freesolv"), None),
    "qald9-amr": ("amr/qald9", ("train",), "train"),
    "scan": ("scan", ("simple", "length"), "length-test"),
    "webnlg-3.0": ("webnlg", ("dev",), "dev"),
}
"""Sets of which some parts are at hand."""

FIRST_SEEN = {"train.txt", "dev.txt", "test.txt", "splits.npz"}
"""Of archives and pickles whose contents no card has checksums of."""


@pytest.mark.parametrize("name", only(WHOLE, "minesweeper", "cora", "brec", "csl", "umls", "tu-mutag"))
def test_a_corpus_is_what_its_card_says(name: str, tmp_path: Path) -> None:
    found = get(name, tmp_path, corpus(WHOLE[name]))
    assert found.is_there
    report = verify(found, read=True)
    assert {state.word for state in (*report.files, *report.splits)} == {"ok"}, report
    assert report.splits or name == "brec"


@pytest.mark.parametrize("name", only(LARGE, "cogs"))
def test_a_large_corpus_is_what_its_card_says(name: str, tmp_path: Path) -> None:
    folder, split = LARGE[name]
    found = get(name, tmp_path, corpus(folder))
    assert found.is_there
    assert {state.word for state in verify(found).files if state.name not in FIRST_SEEN} <= {"ok"}
    assert verify(found).good
    if split is not None:
        assert sum(1 for _ in found.stream(split)) == found.card.splits[split].items


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_parts_of_a_corpus_are_what_its_card_says(name: str, tmp_path: Path) -> None:
    folder, parts, split = PARTS[name]
    found = get(name, tmp_path, corpus(folder), parts)
    assert {state.word for state in verify(found, parts=parts).files} == {"ok"}
    if split is not None:
        assert sum(1 for _ in found.stream(split)) == found.card.splits[split].items
