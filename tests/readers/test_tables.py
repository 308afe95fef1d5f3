"""Tables: the relations of columns, against other libraries; what cannot be related."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from structpe import StructPEError, as_structure, build, encode
from structpe.encodings.tabular import Tabular
from structpe.formats import read
from structpe.formats.tables import _numbers, feature_graph
from structpe.positions import Dims
from tests.together import together

CSV = 'age,"income, net",children,paid\n30,1e3,0,yes\n41,2.5e3,2,no\n29,900,0,yes\n62,4e3,3,no\n35,-1,1,no\n'
NAMES = ("age", "income, net", "children")


def weights(structure):
    """(m, m) symmetric, 0 where there is no edge."""
    found = np.zeros((structure.size, structure.size))
    found[tuple(structure.edges.T)] = structure.features["edge_weight"]
    return found + found.T


@st.composite
def tables(draw):
    rows, columns = draw(st.integers(3, 30)), draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 999)))
    table = random.integers(0, draw(st.sampled_from([3, 1000])), (rows, columns)) * draw(st.sampled_from([1.0, 1e-3]))
    table[0], table[1] = 0, 1  # no column has one value
    return table


@given(tables())
def test_correlations_are_those_of_pandas(table):
    frame = pandas.DataFrame(table)
    for relation in ("pearson", "spearman"):
        expected = frame.corr(relation).to_numpy() - np.eye(table.shape[1])
        np.testing.assert_allclose(weights(as_structure(frame, relation=relation)), expected, atol=1e-12)


@given(tables())
def test_mutual_information_is_that_of_classes(table):
    found = weights(
        feature_graph([str(i) for i in range(table.shape[1])], list(table.T), "mutual information", bins=100)
    )
    codes = [np.unique(column, return_inverse=True)[1] for column in table.T]
    for i in range(table.shape[1]):
        for j in range(i):
            assert found[i, j] == pytest.approx(mutual_info_score(codes[i], codes[j]), abs=1e-12)


def test_many_numbers_become_classes_of_as_many_rows():
    column = np.arange(100.0)
    (weight,) = feature_graph("ab", [column, column], "mutual information", bins=4).features["edge_weight"]
    assert weight == pytest.approx(np.log(4))


def test_numbers_far_apart_do_not_overflow():
    a, b = np.array([1.0, 2.0, 4.0]), np.array([3.0, 1.0, 2.0])
    (weight,) = feature_graph("ab", [1e300 * a, 1e-300 * b], "pearson").features["edge_weight"]
    assert weight == pytest.approx(scipy.stats.pearsonr(a, b).statistic)


def test_a_file_is_one_graph(write):
    path = write("people.csv", CSV)
    structure = read(path, "table", columns=NAMES)[0].structure
    assert structure.nodes == NAMES
    assert not structure.directed
    assert structure.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert structure.features["edge_weight"][0] == pytest.approx(0.7)
    assert len(read(path, "table", columns=NAMES, threshold=0.75)[0].structure.edges) == 1
    mixed = read(path, "table", relation="mutual information")[0].structure
    assert mixed.nodes[-1] == "paid"
    frame = pandas.read_csv(path)
    frame["paid"] = frame["paid"].astype("category")
    np.testing.assert_allclose(weights(as_structure(frame, relation="mutual information")), weights(mixed))
    assert read(write("a.tsv", "a\tb\n1\t2\n2\t1\n"), "table", delimiter="\t")[0].structure.size == 2


def test_tab_pet_takes_it(write):
    structure = read(write("people.csv", CSV), "table", columns=NAMES)[0].structure
    positions = encode([structure], [Tabular(max_k=2)])
    assert tuple(positions[Tabular(max_k=2)].shape) == (1, 3, 4)
    model = build({"name": "tab-pet"}, Dims(width=16, heads=2, layers=1))
    assert model.encodings


@together(
    "content, options, message",
    [
        (CSV, {}, "column 'paid' has texts, 'yes' first, which have no correlation; give relation='mutual informati"),
        (
            CSV,
            {"columns": ["city"]},
            "line 1: there is no column 'city'; columns are: 'age', 'income, net', 'children'",
        ),
        (
            CSV,
            {"relation": "kendall"},
            "takes one of 'pearson', 'spearman', 'mutual information'; given is 'kendall'",
        ),
        (CSV, {"threshold": -1.0}, "the threshold is -1.0; give 0 or more"),
        (CSV, {"bins": 1}, "bins is 1; give a whole number, 2 or more"),
        (CSV, {"delimiter": "ab"}, "the delimiter is 'ab'; give one character"),
        ("a,b\n1,2\n3,\n", {}, "line 3: the cell of column 'b' is empty; fill it, or leave the row out"),
        ("a,b\n1,2\n3\n", {}, "line 3: the row has 1 cells, the header 2"),
        ("a,b\n1,2\n1,3\n", {}, "column 'a' has one value, 1.0, so no correlation; leave it out"),
        ("a,b\n1,2\n", {}, "the table has 1 rows; dependence between columns needs 2 or more"),
        ("a,b\n1,1e999\n2,3\n", {}, "column 'b' is inf in row 0, and in 0 other rows; fill or remove these first"),
        ("a,b\n1,nan\n2,3\n", {}, "column 'b' has texts, 'nan' first"),
        ("", {}, "the file is empty; the first line of a CSV file names its columns"),
        ('a,"b\n1,2\n', {}, "not CSV: unexpected end of data; check the quotes"),
    ],
)
def test_what_is_wrong_is_said(write, content, options, message):
    with pytest.raises(StructPEError, match=message):
        read(write("a.csv", content), "table", **options)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"a": [1.0, None, 3.0]}, "column 'a' has no value in row 1, and in 0 other rows; fill or drop these first"),
        ({"a": ["x", None]}, "column 'a' has no value in row 1"),
        ({"a": pandas.to_datetime(["2020-01-01", "2021-01-01"])}, "column 'a' has .* in row 0; give numbers"),
        ({}, "the table has no column"),
    ],
)
def test_what_is_wrong_with_a_frame_is_said(frame, message):
    with pytest.raises(StructPEError, match=message):
        as_structure(pandas.DataFrame(frame), relation="mutual information")
    with pytest.raises(StructPEError, match="there is no column 'z'; columns are: "):
        as_structure(pandas.DataFrame(frame), columns=["z"])


def test_a_long_cell_is_looked_at_once(tmp_path):
    """Patterns that can match digits in two ways take time that grows with the square, here minutes."""
    file = tmp_path / "a.csv"
    file.write_text("x,y\n1," + "9" * 131_000 + "a\n2,3\n3,4\n")
    with pytest.raises(StructPEError, match="column 'y' has texts"):
        read(file, "table")
    for text, number in (("1.", 1.0), (".5", 0.5), ("-1.5e-3", -0.0015), ("+2E2", 200.0), ("007", 7.0)):
        assert _numbers([text]).tolist() == [number]
    for text in (".", "1e", "e5", "1.2.3", "1 2", "--1", "", "0x1", "1_0", "nan", "inf"):
        assert _numbers([text]).tolist() == [text]


@pytest.mark.parametrize(("relation", "most"), [("spearman", 2048), ("pearson", 2048), ("mutual information", 512)])
def test_too_many_columns_are_refused_before_they_are_read(tmp_path, relation, most):
    file = tmp_path / "a.csv"
    names = [f"c{number}" for number in range(most + 1)]
    file.write_text(",".join(names) + "\n1,2\n")  # the row would be an error of its own
    said = f"the table has {most + 1} columns, and {relation} compares all pairs of at most {most}; choose some"
    with pytest.raises(StructPEError, match=said):
        read(file, "table", relation=relation)
    with pytest.raises(StructPEError, match=said):
        feature_graph(names, [np.arange(3.0)] * len(names), relation)
    with pytest.raises(StructPEError, match="the row has 2 cells"):
        read(file, "table", relation=relation, columns=names[:3])


def test_information_of_columns_of_many_classes_takes_little_memory():
    """A table of all pairs of classes would have 10^10 cells."""
    words = np.array([f"w{number}" for number in range(100_000)], dtype=object)
    graph = feature_graph(["a", "b"], [words, words[::-1]], "mutual information")
    assert graph.features["edge_weight"].tolist() == [pytest.approx(np.log(100_000))]
