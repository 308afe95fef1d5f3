"""Formulas of docstrings, which are written for an editor, as a page shows them: s_ij becomes s with an index.

They become MathML, which browsers draw themselves: there is no JavaScript and no font to fetch, and pages are right
without a network. A formula of a docstring is a line of mathematics and words; a line may break between its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

__all__ = ["display", "display_lines", "indexed"]

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ",
    "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ",
    "psi": "ψ", "omega": "ω", "Delta": "Δ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ", "Omega": "Ω",
}  # fmt: skip
LARGE = {"sum": "∑", "prod": "∏"}
FUNCTIONS = {"sin", "cos", "tanh", "exp", "log", "ln", "Re", "Im", "mod"}
"""Words that are mathematics without brackets behind them."""
UPRIGHT = {"max", "min", "in", "out", "rel", "abs", "role", "rank", "hop"}
"""Indices that are words; other short ones are several letters."""
LETTERS = {"ij", "ts", "uv", "dp", "dt"}
"""Products or indices of two letters that stand alone."""
SIGNS = {"...": "…", "..": "…", "->": "→", "<-": "←", "<=": "≤", ">=": "≥", "!=": "≠", "+-": "±", "-": "−", "-=": "−=",
         "*": "∗", "//": "//"}  # fmt: skip
RELATIONS = {"=", "+=", "-=", "*=", "->", "<-", "<=", ">=", "!=", "<", ">", "+", "-", "+-"}
"""What ends a product, and before which a line may break."""
PRIMED = re.compile(r"<msup>(<mi.*</mi>)(<mo>′+</mo>)</msup>")
OPENS, CLOSES = "([{", ")]}"
NEAR = "=+-*/^.([|])"
"""A letter that is also an English word, as a, belongs to a formula if one of these is beside it."""
ARGUMENT = re.compile(r" (?:\d|(?:[A-Za-z]|" + "|".join(GREEK) + r")(?:'|_|\b))")
"""What follows a function without brackets."""
BREAK = 36
"""Characters of a formula above which it may break before a sign."""
TOKEN = re.compile(
    r"``(?P<code>[^`]+)``"
    r"|(?P<word>(?:float|int)\d+|[A-Za-z]+(?:-[A-Za-z]{2,})+|[A-Za-z]{2,}-[A-Za-z]+(?![A-Za-z(\[_])|[A-Za-z]+'[a-z]+)"
    r"|(?P<name>[A-Za-z]+'*)"
    r"|(?P<number>\d+(?:\.\d+)?(?:e-\d+)?)"
    r"|(?P<sign>\.\.\.|\.\.|->|<-|<=|>=|!=|\+-|[-+*]=|//|[-+*/=<>|])"
    r"|(?P<script>[_^])"
    r"|(?P<bracket>[()\[\]{}])"
    r"|(?P<space>\s+)"
    r"|(?P<other>.)"
)
INDEX = re.compile(
    r"(?<![\w`\\])([A-Za-z]|" + "|".join(GREEK) + r")('?)_([A-Za-z0-9]{1,5})(?:\^(-?[A-Za-z0-9]+))?(?![\w(])"
)


class Token(NamedTuple):
    """A piece of a line: its kind, its text, and whether it belongs to mathematics."""

    kind: str
    text: str
    math: bool


class Item(NamedTuple):
    """A piece of mathematics as MathML: an ``operand``, a ``sign``, a ``space``, or a ``group`` in brackets."""

    kind: str
    html: str
    text: str = ""


def display(line: str) -> str:
    """The HTML of a formula in a line of its own: MathML with words between."""
    out: list[str] = []
    for math, run in _runs(_tokens(line)):
        if math:
            out.append(_broken(run))
        else:
            out += [f"<code>{escape(each.text)}</code>" if each.kind == "code" else _said(each.text) for each in run]
    return "".join(out)


def display_lines(block: list[str]) -> str:
    """The HTML of lines of formulas: one further right than the first goes on with it; wide gaps stay."""
    least = min(len(line) - len(line.lstrip()) for line in block)
    shown = []
    for line in block:
        parts = "".join(f"<span>{display(part)}</span>" for part in re.split(r" {3,}", line.strip()))
        shown.append(f"<div{' class=more' if line.startswith(' ' * (least + 4)) else ''}>{parts}</div>")
    return f'<div class="formula lines">{"".join(shown)}</div>'


def _said(text: str) -> str:
    return escape(SIGNS.get(text, text) if text != "*" else text, quote=False)


def _tokens(line: str) -> list[Token]:
    """The pieces of a line, each with whether it is mathematics by itself or by its neighbours."""
    return [
        Token(str(each.lastgroup), each["code"] or each[0], _is_math(each, line[: each.start()], line[each.end() :]))
        for each in TOKEN.finditer(line)
    ]


def _is_math(found: re.Match[str], before: str, after: str) -> bool:
    """Whether a piece is mathematics, by itself or by what is before and after it."""
    kind = found.lastgroup
    if kind == "name":
        return _is_symbol(found[0], before, after)
    if kind == "number":
        return not re.search(r"(?:eq\.|section|[A-Z]\w+|al\.) $", before) and not _a_year(found[0])
    return kind in ("sign", "script", "bracket") or (found[0] == "." and _is_product(before, after))


def _a_year(number: str) -> bool:
    return len(number) == 4 and number[:2] in ("19", "20")


def _is_symbol(name: str, before: str, after: str) -> bool:
    """Whether a name is mathematics and not an English word."""
    word = name.rstrip("'")
    if after[:1] in ("_", "^", "(", "[") or before[-1:] in ("_", "^") or name in LETTERS or word in GREEK:
        return True
    if word in FUNCTIONS:
        return word in ("exp", "log", "ln") or bool(ARGUMENT.match(after))
    if len(word) > 1:
        return False
    around = before.rstrip()[-1:], after.lstrip()[:1]
    begins = around[0] in ("", ".") if word == "A" else word in ("a", "I")
    return not begins or any(each and each in NEAR for each in (*around[word == "A" :],))


def _is_product(before: str, after: str) -> bool:
    """Whether a point is one between two factors, as in q_i.k_j or P[i] . P[j], and not the end of a sentence."""
    near = bool(re.search(r"[\w)\]'_]$", before) and re.match(r"[A-Za-z(\[]", after))
    return near or (before[-1:] == " " and after[:1] == " ")


def _runs(tokens: list[Token]) -> Iterator[tuple[bool, list[Token]]]:
    """Mathematics and words in turns; brackets that contain only words are words, others mathematics."""
    run: list[Token] = []
    math, place = False, 0
    while place < len(tokens):
        end = _group(tokens, place)
        piece = tokens[place:end]
        called = place > 0 and tokens[place - 1].math and tokens[place - 1].kind != "sign"
        is_math = piece[0].math if len(piece) == 1 else called or _mathematical(piece)
        if piece[0].kind == "space":  # between two pieces of mathematics a part of them
            is_math = math and piece[0].text == " " and _goes_on(tokens, end)
        if is_math != math and run:
            yield math, run
            run = []
        math, place = is_math, end
        run += piece
    if run:
        yield math, run


def _goes_on(tokens: list[Token], place: int) -> bool:
    """Whether mathematics begins at a place."""
    if place >= len(tokens):
        return False
    end = _group(tokens, place)
    return tokens[place].math if end == place + 1 else _mathematical(tokens[place:end])


def _group(tokens: list[Token], place: int) -> int:
    """Where what begins at a place ends: behind its closing bracket, or behind it."""
    depth = 0
    for end in range(place, len(tokens)):
        text = tokens[end].text
        depth += (text in OPENS) - (text in CLOSES) if tokens[end].kind == "bracket" else 0
        if depth <= 0:
            return end + 1
    return place + 1


def _mathematical(group: list[Token]) -> bool:
    """Whether brackets hold mathematics: no words, or words beside signs and indices."""
    inside = group[1:-1]
    words = sum(each.kind in ("word", "name") and not each.math for each in inside)
    return words == 0 or any(each.math and each.kind in ("script", "bracket") for each in inside)


def _broken(tokens: list[Token]) -> str:
    """Mathematics as MathML; a long one in parts between which a line may break."""
    long = sum(len(each.text) for each in tokens) > BREAK
    parts: list[list[Token]] = [[]]
    place = 0
    while place < len(tokens):
        end = _group(tokens, place)
        spaced = place > 0 and tokens[place - 1].kind == "space"
        if long and parts[-1] and spaced and tokens[place].kind == "sign" and tokens[place].text in RELATIONS:
            parts.append([])
        parts[-1] += tokens[place:end]
        place = end
    return "<wbr>".join(f'<math displaystyle="true">{_row(part)}</math>' for part in parts)


def _row(tokens: list[Token]) -> str:
    """The MathML of a row of mathematics."""
    return "".join(each.html for each in _fractions(_items(tokens)))


def _items(tokens: list[Token]) -> list[Item]:
    """Operands with their indices, signs and spaces."""
    items: list[Item] = []
    place, bars = 0, 0
    while place < len(tokens):
        token, end = tokens[place], _group(tokens, place)
        if token.kind == "script" and items:
            place = _script(items, tokens, place)
            continue
        if end > place + 1:
            items.append(_bracketed(items, tokens[place:end]))
        elif token.text == "|":
            bars += 1
            items.append(_bar(opens=bars % 2 == 1))
        elif token.kind == "space":
            items += _gap(items, tokens, place, end)
        else:
            items.append(_sign(items, tokens, place) if token.kind == "sign" else _single(token))
        place = end
    return items


def _bar(opens: bool) -> Item:
    form = "prefix" if opens else "postfix"
    return Item("operand", f'<mo stretchy="false" form="{form}">|</mo>', "|")


def _gap(items: list[Item], tokens: list[Token], place: int, end: int) -> list[Item]:
    """A thin space between two factors, and the space of words."""
    beside = [tokens[at] for at in (place - 1, end) if 0 <= at < len(tokens)]
    words = any(each.kind in ("word", "name") and not each.math for each in beside)
    if words and not any(each.kind == "sign" for each in beside):
        return [Item("sign", "<mtext>&nbsp;</mtext>", " ")]
    factors = (
        items
        and items[-1].kind in ("operand", "group")
        and end < len(tokens)
        and tokens[end].kind not in ("sign", "other")
    )
    return [Item("space", '<mspace width="0.17em"></mspace>')] if factors else []


def _sign(items: list[Item], tokens: list[Token], place: int) -> Item:
    """A sign between two operands or before one; a spaced ``/`` is the line of a fraction."""
    text = tokens[place].text
    shown = escape(SIGNS.get(text, text))
    if text == "...":
        return Item("operand", f"<mo>{shown}</mo>", text)
    around = [tokens[at].kind == "space" for at in (place - 1, place + 1) if 0 <= at < len(tokens)]
    spaced = bool(around) and all(around)
    between = spaced or bool(items and items[-1].kind in ("operand", "group"))
    kind = "over" if spaced and text == "/" else "sign"
    tight = ' lspace="0" rspace="0"' if text in ("/", "..") else ""
    form = "infix" if between else "prefix"
    return Item(kind, f'<mo stretchy="false" form="{form}"{tight}>{shown}</mo>', text)


def _single(token: Token) -> Item:
    """A name, a number, a point or a comma, or a word within brackets."""
    if token.kind == "number":
        return Item("operand", f"<mn>{token.text}</mn>", token.text)
    if token.kind == "name" and (token.math or len(token.text) == 1):
        return Item("operand", _name(token.text), token.text)
    if token.kind in ("word", "name", "code"):
        return Item("sign", f"<mtext>{escape(token.text)}</mtext>", " ")
    if token.text == ".":
        return Item("operand", '<mo form="infix" lspace="0.12em" rspace="0.12em">·</mo>', ".")
    if token.text == ",":
        return Item("sign", '<mo separator="true" form="infix" lspace="0" rspace="0.25em">,</mo>', ",")
    return Item("sign", f'<mo stretchy="false">{escape(SIGNS.get(token.text, token.text))}</mo>', token.text)


def _name(text: str) -> str:
    """A symbol, or the name of a function."""
    word = text.rstrip("'")
    primes = "′" * (len(text) - len(word))
    if word in LARGE:
        return f"<mo>{LARGE[word]}</mo>"
    if word == "mod":
        return '<mo form="infix" lspace="0.22em" rspace="0.22em">mod</mo>'
    if word in LETTERS:
        return f"<mrow>{''.join(f'<mi>{letter}</mi>' for letter in word)}</mrow>"
    shown = GREEK.get(word, word)
    symbol = f"<mi>{shown}</mi>" if len(shown) == 1 else f'<mi class="word">{shown}</mi>'
    return f"<msup>{symbol}<mo>{primes}</mo></msup>" if primes else symbol


def _bracketed(items: list[Item], group: list[Token]) -> Item:
    """A group in brackets; behind sqrt a root."""
    inside = _row(group[1:-1])
    if items and items[-1].text == "sqrt":
        items.pop()
        return Item("operand", f"<msqrt><mrow>{inside}</mrow></msqrt>")
    marks = [
        f'<mo stretchy="true" form="{form}">{group[at].text}</mo>' for at, form in ((0, "prefix"), (-1, "postfix"))
    ]
    after = bool(items) and items[-1].kind in ("operand", "group") and items[-1].text != "|"
    return Item("operand" if after else "group", f"<mrow>{marks[0]}{inside}{marks[1]}</mrow>", inside)


def _script(items: list[Item], tokens: list[Token], place: int) -> int:
    """Put the indices that begin at a place on the last item; return where they end."""
    scripts: dict[str, str] = {}
    while place < len(tokens) and tokens[place].kind == "script" and tokens[place].text not in scripts:
        kind, start = tokens[place].text, place + 1
        end = _scripted(tokens, start)
        inside = tokens[start:end]
        grouped = inside and inside[0].kind == "bracket"
        called = inside and inside[-1].text == ")"
        scripts[kind] = _row(inside[1:-1]) if grouped else _row(inside) if called else "".join(map(_small, inside))
        place = end
    base = items.pop()
    sub, sup = (f"<mrow>{scripts[kind]}</mrow>" if kind in scripts else "" for kind in "_^")
    primed = PRIMED.fullmatch(base.html)
    if primed and not sup:
        items.append(Item("operand", f"<msubsup>{primed[1]}{sub}{primed[2]}</msubsup>"))
        return place
    under = base.text in LARGE
    tag = ("munder" if under else "msub") if not sup else "msup" if not sub else "msubsup"
    items.append(Item("operand", f"<{tag}>{base.html}{sub}{sup}</{tag}>", base.text if under else ""))
    return place


def _scripted(tokens: list[Token], start: int) -> int:
    """Where an index that begins at a place ends: a group, a name or number with its sign, or what bars enclose."""
    if start >= len(tokens):
        return start
    if tokens[start].text == "|":
        return next(at for at in range(start + 1, len(tokens)) if tokens[at].text == "|") + 1
    if tokens[start].text in ("-", "."):  # D^-1, D^-1/2, a column W_.w
        return start + (
            4 if [each.kind for each in tokens[start + 1 : start + 4]] == ["number", "sign", "number"] else 2
        )
    end = _group(tokens, start)
    if (
        tokens[start - 1].text == "^"
        and tokens[start].text.islower()
        and tokens[end : end + 1]
        and tokens[end].text == "("
    ):
        return _group(tokens, end)  # g^f(x)
    while end < len(tokens) and tokens[start].kind in ("number", "name") and tokens[end].kind in ("number", "name"):
        end += 1
    return end


def _small(token: Token) -> str:
    """A piece of an index: a word is upright, other letters are symbols."""
    word = token.text.rstrip("'")
    primes = f"<mo>{'′' * (len(token.text) - len(word))}</mo>" if token.text != word else ""
    if token.kind != "name":
        return re.sub(r"<mo[^>]*>", '<mo lspace="0" rspace="0">', _single(token).html)
    if word in GREEK:
        return f"<mi>{GREEK[word]}</mi>{primes}"
    if word in UPRIGHT or len(word) > 3:
        return f'<mi class="word">{word}</mi>{primes}'
    return "".join(f"<mi>{letter}</mi>" for letter in word) + primes


def _fractions(items: list[Item]) -> list[Item]:
    """Items with each quotient as a fraction: what is before the sign back to a sum, and the one factor behind it."""
    out: list[Item] = []
    place = 0
    while place < len(items):
        item = items[place]
        if item.kind != "over" or place + 1 == len(items):
            out.append(item)
            place += 1
            continue
        above: list[Item] = []
        while out and out[-1].kind != "sign":
            above.insert(0, out.pop())
        end = _factor(items, place + 1)
        out.append(
            Item("operand", f"<mfrac><mrow>{_bare(above)}</mrow><mrow>{_bare(items[place + 1 : end])}</mrow></mfrac>")
        )
        place = end
    return out


def _factor(items: list[Item], start: int) -> int:
    """Where the factor that begins at a place ends: at a space or a sign."""
    if items[start].text in LARGE:  # all that is summed
        return next((at for at in range(start, len(items)) if items[at].kind == "sign"), len(items))
    end = start + (3 if items[start].text in FUNCTIONS else 1)
    while end < len(items) and items[end].kind == "operand" and items[end].text not in (".", "|"):
        end += 1
    return end


def _bare(items: list[Item]) -> str:
    """Items in a line; brackets around all of them are not needed over or under a line."""
    if len(items) == 1 and items[0].kind == "group":
        return items[0].text
    return "".join(each.html for each in items)


def indexed(text: str) -> str:
    """Running text with the indices of its symbols as reStructuredText sets them."""

    def told(found: re.Match[str]) -> str:
        raised = f"\\ :sup:`{found[4].replace('-', '−')}`" if found[4] else ""
        return rf"\ *{GREEK.get(found[1], found[1])}{found[2]}*\ :sub:`{found[3]}`{raised}\ "

    return INDEX.sub(told, text)
