from __future__ import annotations

import pytest

from structpe.errors import StructureError
from structpe.formats import triples
from structpe.structure import Structure
from structpe.transforms.texts import readable, readable_relation, with_readable_labels
from tests.together import together


@together(
    "raw, clean",
    [
        ("want-01", "want"),
        ("Alan_Bean", "Alan Bean"),
        ('"2,702"', "2,702"),
        ("AmeriGas", "AmeriGas"),
        ("1955-11-05", "1955-11-05"),
        ("V600E", "V600E"),
        ("_", "_"),
        ('""', '""'),
    ],
)
def test_nodes(raw, clean):
    assert readable(raw) == clean


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("isPartOf", "is part of"),
        ("LCCN_number", "LCCN number"),
        ("runwayLength_(ft)", "runway length (ft)"),
        ("1st_runway_LengthFeet", "1st runway length feet"),
        (":ARG0-of", ":ARG0-of"),
        ("nsubj", "nsubj"),
        ("", ""),
    ],
)
def test_relations(raw, clean):
    assert readable_relation(raw) == clean


def test_a_graph_keeps_its_nodes_apart():
    made = with_readable_labels(triples([("A_B", "birthPlace", "A B")]))
    assert made.nodes == ("A B", "A B")
    assert made.relations == ("birth place",)


def test_units_come_after():
    with pytest.raises(StructureError, match="make the labels readable first, then split"):
        with_readable_labels(Structure(("a",), [], units=("a",), owner=[0]))
