"""The survey's Table 1 as printed, written down here a second time: no spec may misquote it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from structpe.positions import MODELS, Cells
from tests.together import together

# Reference point, injection, learnable, recurring, unbound; number of parameters. In the survey's order.
PRINTED: dict[str, tuple[str, str]] = {
    "learned absolute": ("A APE y n n", "t * d"),
    "Reformer": ("A APE y n n", "(d - d1) * t / t1 + d1 * t1"),
    "FLOATER": ("A APE y y y", "0"),  # "0 or more"
    "Shortformer": ("A APE n y y", "0"),
    "complex embeddings": ("A - y n y", "2 * n * d"),
    "Shaw, absolute": ("A MAM y y n", "2 * t * t * d * l"),
    "Shaw, relative": ("R MAM y y n", "2 * (2 * t - 1) * d * l"),
    "T5": ("R MAM y y n", "(2 * t - 1) * h"),
    "Huang": ("R MAM y y n", "d * l * h * (2 * t - 1)"),
    "DeBERTa": ("B both y y n", "3 * t * d"),
    "Transformer-XL": ("R MAM y y y", "2 * d + d * d * l * h"),
    "TENER": ("R MAM y y y", "2 * d * l * h"),
    "DA-Transformer": ("R MAM y y y", "2 * h"),
    "TUPE": ("B MAM y n n", "2 * d * d + t * (d + 2)"),
    "RNN-Transformer": ("R - y n y", "6 * d * d + 3 * d"),
    "SPE": ("R MAM y y n", "3 * K * d * h + l * d"),
    "sinusoidal": ("A APE n n y", "0"),
    "Universal Transformer": ("A APE n y y", "0"),
    "DiSAN and rotary": ("R MAM n y y", "0"),
    "SPR, absolute": ("A APE n n y", "0"),
    "SPR, relative": ("R MAM y n n", "2 * (2 * t + 1) * d"),
    "TPE": ("A APE y n n", "d / D_max"),
    "Zhu": ("R MAM y y y", "5 * d * d + (d + 1) * dr"),
    "Cai and Lam": ("R MAM y y y", "7 * d * d + 3 * d"),
    "Graformer": ("R MAM y y n", "2 * (D_max + 1) * h"),
    "Dwivedi and Bresson": ("A APE n n y", "0"),
    "GRAPH-BERT": ("B APE n n y", "0"),
}

ROWS = {
    "learned": "learned absolute",
    "reformer": "Reformer",
    "floater": "FLOATER",
    "floater-input": "FLOATER",
    "shortformer": "Shortformer",
    "complex": "complex embeddings",
    "shaw-absolute": "Shaw, absolute",
    "shaw": "Shaw, relative",
    "t5": "T5",
    "t5-causal": "T5",
    "t5-unshared": "T5",
    "huang-m1": "Huang",
    "huang-m2": "Huang",
    "huang-m3": "Huang",
    "huang-m4": "Huang",
    "deberta": "DeBERTa",
    "deberta-v2": "DeBERTa",
    "transformer-xl": "Transformer-XL",
    "tener": "TENER",
    "tener-survey": "TENER",
    "da-transformer": "DA-Transformer",
    "tupe-a": "TUPE",
    "tupe-r": "TUPE",
    "rnn": "RNN-Transformer",
    "rr": "RNN-Transformer",
    "spe-gated": "SPE",
    "sinusoidal": "sinusoidal",
    "mvpe": "sinusoidal",
    "length-difference": "sinusoidal",
    "length-ratio": "sinusoidal",
    "noisy-length": "sinusoidal",
    "universal": "Universal Transformer",
    "universal-sinusoidal": "Universal Transformer",
    "disan": "DiSAN and rotary",
    "rotary": "DiSAN and rotary",
    "rotary-half": "DiSAN and rotary",
    "spr-abs": "SPR, absolute",
    "spr-rel": "SPR, relative",
    "tpe": "TPE",
    "zhu-self": "Zhu",
    "cai": "Cai and Lam",
    "graformer": "Graformer",
    "graformer-survey": "Graformer",
    "dwivedi": "Dwivedi and Bresson",
    "graph-bert": "GRAPH-BERT",
    "graph-bert-survey": "GRAPH-BERT",
}
"""Which row of the table a model is; the others have none."""

# Numbers of which no two formulas above make the same, unless they are the same.
SIZES = {"d": 97, "t": 89, "h": 7, "l": 5, "n": 1009, "d1": 31, "t1": 11, "K": 13, "D_max": 17, "dr": 41}


def counted(formula: str) -> float:
    return float(eval(formula, {"__builtins__": {}}, SIZES))


def as_printed(cells: Cells) -> tuple[str, float]:
    marks = " ".join("y" if mark else "n" for mark in (cells.learnable, cells.recurring, cells.unbound))
    return f"{cells.reference} {cells.injection} {marks}", counted(cells.params)


@together("name", sorted(set(ROWS) & set(MODELS)))
def test_the_row_is_quoted_as_printed(name: str) -> None:
    table1 = MODELS[name].spec.table1
    assert table1 is not None
    marks, formula = PRINTED[ROWS[name]]
    assert as_printed(table1) == (marks, pytest.approx(counted(formula)))


def test_what_the_table_does_not_have_is_not_quoted() -> None:
    assert not [name for name in set(MODELS) - set(ROWS) if MODELS[name].spec.table1 is not None]


def test_every_quotation_is_some_row_of_the_table() -> None:
    """Also of a model that nobody has entered above; its formula may have its own letters."""
    quoted = {name: model.spec.table1 for name, model in MODELS.items() if model.spec.table1 is not None}
    printed = {marks for marks, _ in PRINTED.values()}
    assert not {name for name, row in quoted.items() if as_printed(replace(row, params="0"))[0] not in printed}
