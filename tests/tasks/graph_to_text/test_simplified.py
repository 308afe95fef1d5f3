"""Texts as Graformer's authors compare them."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.tasks.graph_to_text.scores import score, simplified
from tests.examples import examples
from tests.tasks.graph_to_text.test_scores import bleu

WRITTEN = {
    # What the authors' preprocess_text gives, with unidecode 1.4.
    "Aarhus Airport's runway length is 2,702.0.": "aarhus airport ' s runway length is 2 , 702 . 0 .",
    "Adolfo Suárez Madrid–Barajas": "adolfo suarez madrid - barajas",
    "Dead Man’s Plack (1825)": "dead man ' s plack ( 1825 )",
    "Ærø, Straße, Iğdır, İzmir, Azərbaycan": "aero , strasse , igdir , izmir , az @ rbaycan",
    "a_b  c\td": "a_b c d",
    "": "",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_texts_are_written_as_by_the_authors(text: str) -> None:
    assert simplified(text) == WRITTEN[text]


@examples(25)
@given(st.text())
def test_what_comes_out_is_ascii_in_lower_case_and_stays_so(text: str) -> None:
    out = simplified(text)
    assert out.isascii()
    assert simplified(out.lower()) == simplified(out)
    assert all(re.fullmatch(r"\w+|\W", word) for word in out.split(" ") if word)
    assert out == " ".join(out.split())


@examples(100)
@given(st.text(st.characters(max_codepoint=127)))
def test_of_ascii_nothing_but_case_and_blanks_changes(text: str) -> None:
    assert simplified(text).replace(" ", "") == "".join(text.lower().split())


def test_both_scores_are_named_and_each_is_its_own_formula() -> None:
    texts = ["The runway of Ærø-Airport is 2,702 long.", "He flew the plane to the sea"]
    references = [["the runway of Aero Airport is 2,702 long.", "Its runway is long."], ["he flew a plane to the sea"]]
    found = score(texts, references)
    assert found.simplified_bleu == pytest.approx(
        bleu([simplified(text) for text in texts], [[simplified(text) for text in those] for those in references])
    )
    assert found.simplified_bleu > found.bleu + 5
    assert found.simplified_signature.startswith(
        "simplified:lc+ascii+words|nrefs:var|case:mixed|eff:no|tok:none|smooth:none|version:"
    )
    last = str(found).splitlines()[2]
    assert last == f"BLEU, simplified {found.simplified_bleu:.2f}  {found.simplified_signature}"
    assert not math.isclose(found.bleu, found.simplified_bleu)
