"""Formulas of docstrings become MathML and reStructuredText; what is no formula stays."""

from __future__ import annotations

import inspect
import re
import runpy
from xml.etree import ElementTree

import pytest

from structpe.encodings import ENCODINGS
from structpe.positions import MODELS
from tests.modules import ROOT
from tests.together import together

TYPESET = runpy.run_path(str(ROOT / "docs" / "site" / "typeset.py"))


PLAIN = {
    "msqrt": "√({})",
    "mfrac": "({})/({})",
    "msub": "{}_{}",
    "msup": "{}^{}",
    "msubsup": "{}_{}^{}",
    "munder": "{}_{}",
}


def told(element: ElementTree.Element) -> str:
    """MathML as one line."""
    inside = [told(each) for each in element]
    if element.tag in PLAIN:
        return PLAIN[element.tag].format(*inside)
    return (element.text or "") + "".join(inside)


def read_aloud(html: str) -> str:
    """What a page shows, with the tree of each formula in a line."""
    page = ElementTree.fromstring(f"<p>{html.replace('&nbsp;', ' ')}</p>".replace("<wbr>", ""))
    return (page.text or "") + "".join(
        (f"[{told(each)}]" if each.tag == "math" else f"<{each.text}>") + (each.tail or "") for each in page
    )


@together(
    "line, shown",
    [
        ("s_ij -= m_h |r_ij|", "[s_ij−=m_h|r_ij|]"),
        ("s_ij = (q_i.k_j + q_i.c) / sqrt(d_h) + b", "[s_ij][=(q_i·k_j+q_i·c)/(√(d_h))][+b]"),
        ("w_i = K exp(s_i) / sum_k K_k exp(s_k), or", "[w_i][=(Kexp(s_i))/(∑_kK_kexp(s_k))], or"),
        ("10000^(-2i/(d - 1)) <= 1e-8", "[10000^−2i/(d−1)≤1e-8]"),
        ("h_(t-1), W^T, D^-1/2 A", "[h_t−1], [W^T], [D^−1/2A]"),
        ("sum_j f(v_j'), lambda_1", "[∑_jf(v_j′)], [λ_1]"),
        ("``rotary-half`` of a unit's table", "<rotary-half> of a unit's table"),
        ("a = L/L' and a <b>", "[a=L/L^′] and a [<b>]"),
        ("sum of the well-known terms (survey, eq. 31; Schmitt 2021): float32 (k, 3)",
         "sum of the well-known terms (survey, eq. 31; Schmitt 2021): float32 [(k,3)]"),
        ("|r_ij| (P^2)_uu and gamma^f(d - p), log(x) / ln L", "[|r_ij|(P^2)_uu] and [γ^f(d−p)], [(log(x))/(lnL)]"),
        ("U GRU(E[labels of the path ij])", "[UGRU(E[labels of the path ij])]"),
        ("k (2m + 1", "[k(2m+1]"),
    ],
)  # fmt: skip
def test_a_formula_is_set(line: str, shown: str) -> None:
    assert read_aloud(TYPESET["display"](line)) == shown


@pytest.mark.parametrize("names", [MODELS, ENCODINGS])
def test_no_formula_loses_anything(names: dict[str, type]) -> None:
    for name, of in names.items():
        loses_nothing(name, of)


def loses_nothing(name: str, of: type) -> None:
    title, before, line, after, *_ = [*(inspect.getdoc(of) or "").split("\n"), "", ""]
    assert title, name
    assert before == after == "", f"{name}: a page takes the third line as the formula, between empty lines"
    html = TYPESET["display"](line)
    page = ElementTree.fromstring(f"<p>{html.replace('&nbsp;', ' ')}</p>".replace("<wbr>", ""))
    text = " ".join(page.itertext())
    assert re.findall(r"\d+", text) == re.findall(r"\d+", line), name
    assert not set("_^*") & set("".join(text.split("``")[::2]).replace("*=", "").replace("(depth * width)", "")), name
    letters = re.sub(r"sqrt|sum(?=_)|prod(?=_)|" + "|".join(TYPESET["GREEK"]), "", line)
    assert len(re.findall(r"[A-Za-z]", text)) >= len(re.findall(r"[A-Za-z]", letters)) - 12, name  # a role
    known = {"math", "mrow", "mi", "mo", "mn", "mtext", "mspace", "msqrt", "mfrac", "msub", "msup", "msubsup", "munder"}
    assert {each.tag for each in page.iter()} <= known | {"p", "code"}, name
    for each in page.iter():
        assert each.tag not in ("mfrac", "msub", "msup", "munder") or len(each) == 2, name
        assert each.tag != "msubsup" or len(each) == 3, name


def test_indices_of_running_text() -> None:
    indexed = TYPESET["indexed"]
    assert indexed("a table of t_max rows") == r"a table of \ *t*\ :sub:`max`\  rows"
    assert indexed("R_t^T") == r"\ *R*\ :sub:`t`\ :sup:`T`\ "
    assert indexed("edge_x, layers_ and x_long_name") == "edge_x, layers_ and x_long_name"


def test_lines_go_on_where_they_are_indented_and_keep_their_notes() -> None:
    html = TYPESET["display_lines"](["o_i = a_i      the mean", "      + b_i", "c = d"])
    page = ElementTree.fromstring(html.replace("class=more", 'class="more"'))
    assert [line.get("class") for line in page] == [None, "more", None]
    assert [len(line) for line in page] == [2, 1, 1]
    assert page[0][1].text == "the mean"
