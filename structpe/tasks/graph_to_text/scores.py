r"""BLEU and chrF++ by sacrebleu, with their signatures, and BLEU of simplified texts.

There are two BLEU scores, which must not be compared: one of the texts as they are, in sacrebleu's own words (13a), and
one of simplified texts, which Schmitt et al. 2021 and later tables print. Their code (github.com/mnschmit/graformer,
``src/preprocessing/prepare_webnlg.py``) simplifies both training texts and references by ``unidecode(text.lower())``,
splits them by the pattern ``(\W)``, and joins the words with blanks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from structpe.errors import ConfigError, needing

__all__ = ["Scores", "score", "simplified"]


LETTERS = {
    **{"æ": "ae", "œ": "oe", "ø": "o", "ß": "ss", "ı": "i", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h"},
    **{"‐": "-", "‑": "-", "‒": "-", "–": "-", "−": "-", "—": "--", "―": "--", "‘": "'", "’": "'", "‚": ",", "“": '"'},
    **{"”": '"', "„": ",,", "«": "<<", "»": ">>", "‹": "<", "›": ">", "´": "'", "′": "'", "·": "*", "•": "*"},
    **{"ə": "@", "°": "deg"},
    **{"£": "PS", "€": "EUR", "×": "x", "±": "+-", "½": " 1/2", "¼": " 1/4", "¾": " 3/4", "™": "(tm)", "§": "SS"},
}  # fmt: skip
"""Characters without a decomposition into ASCII, as the package unidecode writes them; WebNLG has eight of these."""
TABLE = str.maketrans(LETTERS)


def simplified(text: str) -> str:
    """Simplify a text: lower case, ASCII, and every character but letters, digits and underscores a separate word.

    Accents are removed (é becomes e), and the characters of ``LETTERS`` are spelled out. Characters of other scripts
    are removed; unidecode would transliterate them.
    """
    spelled = unicodedata.normalize("NFKD", text.lower().translate(TABLE))
    plain = spelled.encode("ascii", "ignore").decode("ascii")
    return " ".join(" ".join(re.split(r"(\W)", plain)).split())


@dataclass(frozen=True)
class Scores:
    """Scores of a corpus, from 0 to 100; higher is better.

    Attributes:
        bleu: BLEU of the corpus (Papineni et al. 2002).
        chrf: chrF++ (Popovic 2017): F score, beta 2, of character 1..6-grams and word 1..2-grams.
        simplified_bleu: BLEU of the simplified corpus (:func:`simplified`), without smoothing (Schmitt et al. 2021).
        bleu_signature, chrf_signature, simplified_signature: sacrebleu's signatures, printed with the numbers.
    """

    bleu: float
    chrf: float
    simplified_bleu: float
    bleu_signature: str
    chrf_signature: str
    simplified_signature: str

    def __str__(self) -> str:
        return (
            f"BLEU   {self.bleu:.2f}  {self.bleu_signature}\n"
            f"chrF++ {self.chrf:.2f}  {self.chrf_signature}\n"
            f"BLEU, simplified {self.simplified_bleu:.2f}  {self.simplified_signature}"
        )


def score(hypotheses: Sequence[str], references: Sequence[Sequence[str]], lowercase: bool = False) -> Scores:
    """Score texts against their references.

    Args:
        hypotheses: a text per item, not tokenised.
        references: one or more references per item.
        lowercase: whether to ignore case, for models that write lower case only.

    Raises:
        ConfigError: there is no text, an item has no reference, or the numbers of texts and items differ.
    """
    with needing("sacrebleu", "text"):
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    if len(hypotheses) != len(references) or not hypotheses:
        raise ConfigError(f"{len(hypotheses)} texts for {len(references)} items; give one text per item, one at least")
    if without := [i for i, texts in enumerate(references) if not texts]:
        raise ConfigError(f"item {without[0] + 1} has no reference text to be scored against; leave it out")
    # sacrebleu takes the first references of all items, then the second ones, and so on. A missing one is None; an
    # empty string would count as a reference of length 0 and change the brevity penalty.
    streams = [list(stream) for stream in zip_longest(*references)]
    # force: no warning at each validation about tokenised text, which some corpora hold, such as AMR releases.
    bleu, chrf = BLEU(lowercase=lowercase, force=True), CHRF(word_order=2, lowercase=lowercase)
    simple = BLEU(tokenize="none", smooth_method="none", force=True)
    simple_streams: list[list[str]] = [[text and simplified(text) for text in stream] for stream in streams]
    return Scores(
        bleu.corpus_score(list(hypotheses), streams).score,
        chrf.corpus_score(list(hypotheses), streams).score,
        simple.corpus_score([simplified(text) for text in hypotheses], simple_streams).score,
        str(bleu.get_signature()),
        str(chrf.get_signature()),
        f"simplified:lc+ascii+words|{simple.get_signature()}",
    )
