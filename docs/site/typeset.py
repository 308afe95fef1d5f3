"""Formulas of docstrings, which are written for an editor, as a page shows them: s_ij becomes s with an index.

There is no JavaScript and no font to fetch: pages must be right without a network.
"""

from __future__ import annotations

import re
from html import escape

__all__ = ["display", "indexed"]

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ",
    "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ",
    "psi": "ψ", "omega": "ω", "Delta": "Δ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ", "Omega": "Ω",
}  # fmt: skip
WORDS = {"sqrt": "√", "sum": "∑", "prod": "∏"}
SIGNS = {"...": "…", "->": "→", "<-": "←", "<=": "≤", ">=": "≥", "!=": "≠", "+-": "±"}
TOKEN = re.compile(
    r"``(?P<code>[^`]+)``"
    r"|(?P<name>(?<![A-Za-z]')[A-Za-z]+(?:'+(?![a-z]))?)(?:_(?P<sub>[A-Za-z0-9]+'*))?(?P<call>\()?"
    r"|(?P<raised>[\^_])(?P<what>\(|-?[A-Za-z0-9]+|\|[^|]+\|)"
    r"|(?P<sign>\.\.\.|->|<-|<=|>=|!=|\+-)"
    r"|(?P<dot>(?<=[\w)\]'])\.(?=[A-Za-z(\[])| \. )"
    r"|(?P<minus>(?<![A-Za-z])-|-(?![A-Za-z]))"
)
NEAR = "=+-*/^.([|])"
"""A letter that is also an English word, as a, belongs to a formula if one of these is beside it."""
INDEX = re.compile(
    r"(?<![\w`\\])([A-Za-z]|" + "|".join(GREEK) + r")('?)_([A-Za-z0-9]{1,5})(?:\^(-?[A-Za-z0-9]+))?(?![\w(])"
)


def display(line: str) -> str:
    """The HTML of a formula in a line of its own."""
    out, last, depth = "", 0, 0
    ends: list[tuple[int, str]] = []  # at which depth of brackets what is raised or lowered ends
    for found in [*TOKEN.finditer(line), None]:
        for letter in line[last : found.start() if found else None]:
            depth += (letter == "(") - (letter == ")")
            closes = letter == ")" and ends and ends[-1][0] == depth
            out += ends.pop()[1] if closes else escape(letter, quote=False)
        if found is None:
            return out
        last = found.end()
        tag = "sup" if found["raised"] == "^" else "sub"
        if found["what"] == "(":
            ends.append((depth, f"</{tag}>"))
            out += f"<{tag}>"
        elif found["what"]:
            out += f"<{tag}>{found['what'].replace('-', '−')}</{tag}>"
        else:
            out += _token(found, line)
        depth += bool(found["call"] or found["what"] == "(")
    return out


def _token(found: re.Match[str], line: str) -> str:
    """The HTML of a name, a sign or a word in literal quotes."""
    if found["code"]:
        return f"<code>{escape(found['code'])}</code>"
    if found["sign"]:
        return SIGNS[found["sign"]]
    if found["dot"] or found["minus"]:
        return "·" if found["dot"] else "−"
    name = found["name"].rstrip("'")
    primes = "′" * (len(found["name"]) - len(name))
    shown = GREEK.get(name, WORDS.get(name, name) if found["sub"] or name == "sqrt" else name)
    around = line[: found.start()].rstrip()[-1:], line[found.end() :].lstrip()[:1]
    begins = around[0] in ("", ".") if name == "A" else name in ("a", "I")
    a_word = begins and not found["sub"] and not any(each and each in NEAR for each in (*around[name == "A" :],))
    shown = f"<i>{shown}</i>" if len(shown) == 1 and shown.isalpha() and not a_word else shown
    sub = f"<sub>{found['sub']}</sub>".replace("'", "′") if found["sub"] else ""
    return f"{shown}{primes}{sub}{found['call'] or ''}"


def indexed(text: str) -> str:
    """Running text with the indices of its symbols as reStructuredText sets them."""

    def told(found: re.Match[str]) -> str:
        raised = f"\\ :sup:`{found[4].replace('-', '−')}`" if found[4] else ""
        return rf"\ *{GREEK.get(found[1], found[1])}{found[2]}*\ :sub:`{found[3]}`{raised}\ "

    return INDEX.sub(told, text)
