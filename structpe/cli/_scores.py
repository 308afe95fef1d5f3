"""The scores of a parser, as ``parse`` and ``evaluate`` print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from structpe.cli.base import print_table

if TYPE_CHECKING:
    from structpe.parsing.training import ParserScores

__all__ = ["print_scores"]


def print_scores(scores: ParserScores) -> None:
    """Print the scores of a parser."""
    from structpe.tasks.parser import SCORES

    found = {
        "words and sentences given, all words": (scores.las, scores.uas, scores.upos, scores.xpos),
        "running text, by spaCy's scorer, without punctuation": (
            *(scores.spacy_las, scores.spacy_uas, scores.spacy_upos, scores.spacy_xpos),
        ),
    }
    print(f"{scores.sentences} sentences, {scores.words} words")
    print(f"{scores.spacy_words:.1f} % of the words that spaCy's tokenizer makes of the text are words there\n")
    rows = [[name, *("-" if each is None else f"{each:.1f}" for each in row)] for name, row in found.items()]
    print_table(["", *SCORES], rows, numeric=[*SCORES])
