"""Formulas of docstrings become HTML and reStructuredText; what is no formula stays."""

from __future__ import annotations

import inspect
import re
import runpy

import pytest

from structpe.positions import MODELS
from tests.modules import ROOT

TYPESET = runpy.run_path(str(ROOT / "docs" / "site" / "typeset.py"))


@pytest.mark.parametrize(
    ("line", "html"),
    [
        ("s_ij -= m_h |r_ij|", "<i>s</i><sub>ij</sub> −= <i>m</i><sub>h</sub> |<i>r</i><sub>ij</sub>|"),
        ("q_i.k_j / sqrt(d_h)", "<i>q</i><sub>i</sub>·<i>k</i><sub>j</sub> / √(<i>d</i><sub>h</sub>)"),
        ("10000^(-2i/(d - 1)) <= 1", "10000<sup>−2<i>i</i>/(<i>d</i> − 1)</sup> ≤ 1"),
        ("h_(t-1), W^T, D^-1", "<i>h</i><sub><i>t</i>−1</sub>, <i>W</i><sup>T</sup>, <i>D</i><sup>−1</sup>"),
        ("sum_j f(v_j'), lambda_1", "∑<sub>j</sub> <i>f</i>(<i>v</i><sub>j′</sub>), <i>λ</i><sub>1</sub>"),
        ("``rotary-half`` of a unit's table", "<code>rotary-half</code> of a unit's table"),
        ("a = L/L' and a <b>", "<i>a</i> = <i>L</i>/<i>L</i>′ and a &lt;<i>b</i>&gt;"),
        ("sum of the well-known terms", "sum of the well-known terms"),
    ],
)
def test_a_formula_is_set(line: str, html: str) -> None:
    assert TYPESET["display"](line) == html


def test_the_formula_of_each_model_loses_nothing() -> None:
    for name, model in MODELS.items():
        line = (inspect.getdoc(model) or "").split("\n")[2]
        html = TYPESET["display"](line)
        assert html.count("<sub>") == html.count("</sub>"), name
        assert html.count("<sup>") == html.count("</sup>"), name
        text = re.sub(r"</?(?:i|sub|sup|code)>", " ", html)  # 10000^2 has two numbers
        assert re.findall(r"\d+", text) == re.findall(r"\d+", line), name
        assert "_" not in re.sub(r"<code>.*?</code>", "", html).replace("_·", ""), name  # a column of any name


def test_indices_of_running_text() -> None:
    indexed = TYPESET["indexed"]
    assert indexed("a table of t_max rows") == r"a table of \ *t*\ :sub:`max`\  rows"
    assert indexed("R_t^T") == r"\ *R*\ :sub:`t`\ :sup:`T`\ "
    assert indexed("edge_x, layers_ and x_long_name") == "edge_x, layers_ and x_long_name"
