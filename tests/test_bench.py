"""``make bench``: every encoding and every position model has a row, and who computes something else is not timed."""

from __future__ import annotations

import datetime
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from structpe.encodings import ENCODINGS
from structpe.positions import MODELS
from tests.forking import forked

pytestmark = pytest.mark.early

BESIDE, ALONE, ATTENTION, INJECTED, READY = (
    "Encodings and other libraries",
    "Every encoding",
    "Every position model in one attention",
    "Position models in models of Hugging Face",
    "From structures to a batch",
)


def bench(*words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """A process of its own, which may do something before."""
    with TemporaryDirectory() as printed:
        done = forked(Path(printed), "experiments/speed/bench", *words, before=before).ended()
    return subprocess.CompletedProcess(words, *done)


def names(listed: str, table: str) -> list[str]:
    rows = [line.split("\t") for line in listed.splitlines()]
    return [name for title, name, _ in rows if title == table]


def rows(printed: str, table: str) -> list[list[str]]:
    """The cells of each row."""
    lines = printed.partition(f"\n## {table}\n\n")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def value(cell: str) -> float:
    return float(cell.replace(",", ""))


def test_every_encoding_and_position_model_has_a_row() -> None:
    done = bench("--list")
    assert done.returncode == 0, done.stderr
    assert names(done.stdout, ALONE) == sorted(ENCODINGS)
    assert names(done.stdout, ATTENTION) == sorted(MODELS)
    beside = names(done.stdout, BESIDE)
    assert {"undirected-distance", "laplacian", "random-walk", "rrwp", "lowest-common-ancestor"} <= set(beside)
    assert set(beside) <= set(ENCODINGS)
    assert names(done.stdout, INJECTED) == [name for name in ("hf-t5", "hf-bert", "hf-llama") for _ in range(3)]
    assert {"batch-of", "batch-collate"} <= set(names(done.stdout, READY))


def test_what_is_registered_has_rows_without_an_edit() -> None:
    declared = """
from structpe.encodings import Order
from structpe.positions.buckets import T5
class Other(Order, name="another-order"): ...
class More(T5, name="another-t5"): ...
"""
    listed = bench("--list", before=declared).stdout
    assert "another-order" in names(listed, ALONE)
    assert "another-t5" in names(listed, ATTENTION)


@pytest.mark.slow
def test_a_few_rows_are_measured() -> None:
    done = bench("--rounds", "1", "--only", "depth", "feature", "t5", "vit", "electrostatic", "hf-bert", "batch-of")
    assert done.returncode == 0, done.stderr
    head = done.stdout.splitlines()[0]
    assert head.startswith("`python experiments/speed/bench --rounds 1 --only depth")
    assert f"{datetime.date.today().isoformat()}, commit " in head
    assert "one thread of" in head
    assert re.search(r"Python \S+, numpy \S+, scipy \S+, networkx \S+, PyTorch \S+, PyG .*; seed 0\.$", head)
    beside = rows(done.stdout, BESIDE)
    assert {"scipy", "networkx"} <= {cells[2] for cells in beside}
    for name, _, _, padded, flat, without, theirs, *ratios in beside:
        assert name == "depth"
        for ours, ratio in zip((padded, flat, without), ratios, strict=True):
            assert value(ours) > 0
            assert value(theirs) / value(ours) == pytest.approx(value(ratio), rel=0.02)
    alone = {cells[0]: cells[1:] for cells in rows(done.stdout, ALONE)}
    assert list(alone) == ["depth", "electrostatic", "feature"]
    assert all(value(cell) > 0 for cell in alone["electrostatic"][:-1])
    assert "the structure has no feature 'feature', it has: span" in alone["feature"][-1]
    attention = {cells[0]: cells[1:] for cells in rows(done.stdout, ATTENTION)}
    assert list(attention) == ["electrostatic", "t5", "vit"]
    assert attention["vit"][1].startswith("grids of 4 by 6")
    assert attention["t5"][1] == "trees"
    assert all(value(cell) > 0 for name in ("electrostatic", "t5") for cell in attention[name][2:])
    injected = rows(done.stdout, INJECTED)
    assert [cells[2] for cells in injected[:4]] == ["default: sdpa", "structpe, without", "with bias", "with vectors"]
    assert [cells[1] for cells in injected[::4]] == ["64 of 24", "8 of 128", "2 of 512"]
    assert all(cells[4] == cells[6] == "1" for cells in injected[::4])
    assert [cells[1] for cells in rows(done.stdout, READY)] == ["larger molecules", "larger AMR graphs"]
    assert f"{ATTENTION}: 3 of 3, vit, " in done.stderr
    assert "3 of 3" not in done.stdout


LATER = """
import networkx
networkx.single_source_shortest_path_length = lambda graph, root: {node: 1 for node in graph}
"""
TURNED = """
from torch_geometric.transforms import AddLaplacianEigenvectorPE as Peer
right = Peer.forward
def forward(self, data):
    data = right(self, data)
    data.laplacian_eigenvector_pe = data.laplacian_eigenvector_pe.flip(1)
    return data
Peer.forward = forward
"""


@pytest.mark.parametrize(
    ("name", "before", "expected"),
    [
        ("depth", LATER, "depth of parses: networkx and structpe differ on graph 0, by 1 at the most"),
        pytest.param(
            *("laplacian", TURNED, "larger molecules: PyG, is_undirected=True and structpe differ on graph 0, by "),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_peer_that_disagrees_stops_it(name: str, before: str, expected: str) -> None:
    done = bench("--rounds", "1", "--only", name, before=before)
    assert done.returncode == 1
    assert f"bench: {expected}" in done.stderr
    assert "so nothing is timed" in done.stderr
    assert rows(done.stdout, BESIDE) == []
    assert f"## {ALONE}" not in done.stdout


def test_a_fault_is_shown_and_the_other_rows_are_measured() -> None:
    broken = """
from structpe.encodings import Size
def many(self, structures):
    raise ZeroDivisionError("of our own")
Size.many = many
"""
    done = bench("--rounds", "1", "--only", "size", "words", before=broken)
    assert done.returncode == 1
    faulty, sound = rows(done.stdout, ALONE)
    assert "FAULT: ZeroDivisionError: of our own" in faulty
    assert value(sound[1]) > 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--only", "laplacain"], "no encoding or position model named 'laplacain'. Did you mean 'laplacian'?"),
        (["--rounds", "0"], "--rounds is 0; give 1 or more"),
        (["--write", "--only", "t5"], "--write would put a part in place of whole tables; give it a word, such as"),
    ],
)
def test_a_wrong_word_is_explained(words: list[str], expected: str) -> None:
    done = bench(*words)
    assert done.returncode != 0
    assert expected in done.stderr
    assert done.stdout == ""


def test_help_has_examples() -> None:
    said = bench("--help").stdout
    assert "python experiments/speed/bench --only laplacian t5" in said
    assert "make bench" in said
