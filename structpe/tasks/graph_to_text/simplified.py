r"""Texts as Schmitt et al. 2021 (Graformer) compare them: lower case, ASCII, split at what is no letter or digit.

Their code (github.com/mnschmit/graformer, ``src/preprocessing/prepare_webnlg.py``) is ``unidecode(text.lower())``,
split by the pattern ``(\W)``, words joined by blanks; texts to learn from and references are both written so.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["simplified"]

LETTERS = {
    **{
        "æ": "ae",
        "œ": "oe",
        "ø": "o",
        "ß": "ss",
        "ı": "i",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "ħ": "h",
        "ə": "@",
    },
    **{"‐": "-", "‑": "-", "‒": "-", "–": "-", "−": "-", "—": "--", "―": "--", "‘": "'", "’": "'", "‚": ",", "“": '"'},
    **{
        "”": '"',
        "„": ",,",
        "«": "<<",
        "»": ">>",
        "‹": "<",
        "›": ">",
        "´": "'",
        "′": "'",
        "·": "*",
        "•": "*",
        "°": "deg",
    },
    **{"£": "PS", "€": "EUR", "×": "x", "±": "+-", "½": " 1/2", "¼": " 1/4", "¾": " 3/4", "™": "(tm)", "§": "SS"},
}
"""What has no decomposition into ASCII, as the package unidecode writes it; WebNLG has eight of these."""
TABLE = str.maketrans(LETTERS)


def simplified(text: str) -> str:
    """Lower case, ASCII, each character that is no letter, digit or underscore a word of its own, one blank between.

    Marks of letters are left off (é is e); letters and signs of ``LETTERS`` are spelled out. Characters of other
    scripts are left out, where unidecode would transliterate them.
    """
    spelled = unicodedata.normalize("NFKD", text.lower().translate(TABLE))
    plain = spelled.encode("ascii", "ignore").decode("ascii")
    return " ".join(" ".join(re.split(r"(\W)", plain)).split())
