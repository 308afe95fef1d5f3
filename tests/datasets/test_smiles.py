from __future__ import annotations

import numpy as np
import pytest

from structpe.datasets import load
from structpe.errors import ConfigError, ReadError
from structpe.objectives.regression import Regression

TABLE = """mol,part,mass,toxic,kind
C,train,16.0,0,a
CC,train,30.1,1,b
CCO,valid,,1,
c1ccccc1,test,78.1,,c
Cc1ccccc1,train,92.1,0,a
"""


def table(folder, text=TABLE):
    (folder / "mine.csv").write_text(text)
    return folder


def read(folder, **options):
    return load(
        "smiles", folder, **{"file": "mine.csv", "column": "mol", "targets": ["mass"], "split": "part", **options}
    )


def test_numbers_split_by_a_column(tmp_path):
    data = read(table(tmp_path))
    assert [part.tolist() for part in data.splits[0]] == [[0, 1, 4], [2], [3]]
    np.testing.assert_array_equal(data.targets, np.array([[16.0], [30.1], [np.nan], [78.1], [92.1]], dtype=np.float32))
    assert (data.name, data.objective) == ("mine", Regression("graph", 1, "mae"))
    assert [graph.size for graph in data.graphs] == [1, 2, 3, 6, 7]
    assert data.note == "split by column 'part'"


@pytest.mark.parametrize("text", ["nan", "inf", "1e39", "1,0"])
def test_a_number_is_finite(tmp_path, text):
    with pytest.raises(ReadError, match=rf"mine.csv:1: '{text}' in column 'mass' is not a finite number; .* leave the"):
        read(table(tmp_path, TABLE.replace("16.0", f'"{text}"')))


def test_labels_and_classes(tmp_path):
    labels = read(table(tmp_path), targets=["toxic"], objective="binary", metric="ap")
    np.testing.assert_array_equal(labels.targets[:, 0], [0, 1, 1, np.nan, 0])
    assert labels.objective.metric == "ap"
    classes = read(tmp_path, targets=["kind"], objective="multiclass")
    assert classes.targets.tolist() == [0, 1, -1, 2, 0]
    assert (classes.objective.outputs, classes.objective.metric) == (3, "accuracy")


def test_a_valence_may_be_kept_and_rows_left_out(tmp_path):
    table(tmp_path, TABLE + "O=CO[AlH3](OC=O)OC=O,test,1,0,a\nCC(,train,1,0,a\n")
    with pytest.raises(ReadError, match=r"item 6: line 7: .* give strict=False to keep it with this valence, or on_"):
        read(tmp_path)
    skipped = read(tmp_path, on_error="skip")
    assert len(skipped.graphs) == 5
    assert skipped.note == "split by column 'part'; 2 of 7 rows are skipped, as RDKit cannot read them as molecules"
    kept = read(tmp_path, on_error="skip", strict=False, split="scaffold")
    assert [graph.size for graph in kept.graphs] == [1, 2, 3, 6, 7, 10]


def test_random_and_scaffold_splits(tmp_path):
    rows = "".join(f"{'C' * n},train,{n},0,a\n" for n in range(1, 11)) + "".join(
        f"{'C' * n}c1ccccc1,train,{n},0,a\n" for n in range(1, 11)
    )
    table(tmp_path, TABLE.splitlines()[0] + "\n" + rows)
    split = read(tmp_path, split="random", shares=[0.5, 0.25, 0.25]).splits[0]
    assert [len(part) for part in split] == [10, 5, 5]
    assert sorted(np.concatenate(split).tolist()) == list(range(20))
    again = read(tmp_path, split="random", shares=[0.5, 0.25, 0.25]).splits[0]
    other = read(tmp_path, split="random", shares=[0.5, 0.25, 0.25], seed=1).splits[0]
    assert split.train.tolist() == again.train.tolist() != other.train.tolist()
    scaffold = read(tmp_path, split="scaffold", shares=[0.5, 0.25, 0.25]).splits[0]
    assert [part.tolist() for part in scaffold] == [list(range(10, 20)), [], list(range(10))]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"targets": []},
            ConfigError,
            "targets is []; one column or more must be given for the objective 'regression'",
        ),
        ({"targets": ["masss"]}, ConfigError, "mine.csv: there is no column named 'masss'. Did you mean 'mass'?"),
        (
            {"targets": ["mass", "kind"], "objective": "multiclass"},
            ConfigError,
            "one column must be given for the objective 'multi",
        ),
        (
            {"targets": "mass"},
            ConfigError,
            "option 'targets' of benchmark 'smiles' takes a list of texts; given is 'mass'",
        ),
        ({"targets": ["kind"]}, ReadError, "mine.csv:1: 'a' in column 'kind' is not a finite number; correct it"),
        (
            {"objective": "multilabel"},
            ReadError,
            "mine.csv:1: 16 in column 'mass' is not a label; give 0 or 1",
        ),
        ({"metric": "rocauc"}, ConfigError, "metric is 'rocauc'; the objective 'regression' takes mae or rmse"),
        ({"objective": "link"}, ConfigError, "objective is 'link'; of a table, give one of regression, binary, multil"),
        ({"shares": [0.5, 0.5]}, ConfigError, "shares is [0.5, 0.5]; give three, of training, validation and test"),
        ({"split": "kind"}, ReadError, "mine.csv:1: 'a' in column 'kind' is not a part of a split; give train, valid"),
        ({"split": "fold"}, ConfigError, "split is 'fold'; give random, scaffold, or a column of the table"),
        ({"column": "smiles"}, ReadError, "there is no column 'smiles'"),
        ({"file": "yours.csv"}, ReadError, "there is no file yours.csv in"),
    ],
)
def test_what_does_not_fit(tmp_path, options, error, message):
    with pytest.raises(error) as caught:
        read(table(tmp_path), **options)
    assert message in str(caught.value)


def test_what_must_be_given(tmp_path):
    with pytest.raises(ConfigError, match="benchmark 'smiles' needs the option 'targets'; it takes a list of texts"):
        load("smiles", tmp_path, file="mine.csv")
