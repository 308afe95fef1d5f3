"""Prints the page catalogue.md: every position model with its row of Table 1. ``make docs`` runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from structpe.citing import reference
from structpe.cli.positions import Row
from structpe.positions import MODELS, Dims

HEAD = """\
# The catalogue

Every position model of the library. Each name leads to a page with its formula, what it does on a sequence, a tree, a
graph and a grid, its kernels, costs and citation. Choose values above the table to see fewer rows, or search for a
model, a word or an author.

The cells are those of the survey's Table 1 (Dufter, Schmitt and Schütze 2022): the *reference* point, absolute (A),
relative (R) or both (B); where it *enters*, at the input (APE), in attention (MAM), both or neither; whether numbers
are *learned*; *unbound*, whether inputs of any length are distinguished. They are claims about the models of structpe,
and a test measures each of them; where the survey has another cell, the model's page says so. *Decodes*: whether a
decoder, which writes unit by unit, can use it; it may depend on options. *Parameters* are counted at d = {dims.width},
h = {dims.heads}, l = {dims.layers}. `structpe positions` prints the same for other sizes, and `structpe cite t5` whom
to cite.

"""
COLUMNS = ("model", "what it is", "made for", "year", "reference", "enters", "learned", "unbound", "decodes")
COLUMNS += ("parameters",)
DIMS = Dims(512, 8, 6)
ENTERS = {"-": "neither"}
FLAG = {True: "yes", False: "no", None: "depends"}


def main() -> None:
    """Print the page."""
    print(HEAD.format(dims=DIMS))
    print("\n".join(table()))


def table() -> Iterator[str]:
    """A row per model."""
    yield ":::{table}\n:class: filtered\n"
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * (len(COLUMNS) - 1)}--:|"
    for name in sorted(MODELS):
        row = Row.measured(name, DIMS)
        if row.spec is None:
            continue
        ours = row.spec.cells
        count = "" if row.parameters is None else f"{row.parameters:,}"
        flags = (FLAG[ours.learnable], FLAG[ours.unbound], FLAG[row.decodes])
        enters = ENTERS.get(ours.injection, ours.injection)
        cells = (f"[`{name}`](catalogue/{name}.md)", row.about, row.spec.structure, year(row.spec.cite))
        cells += (ours.reference, enters, *flags, count)
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
    yield ":::"


def year(cite: str) -> str:
    """The year of a BibTeX entry."""
    found = re.search(r"year\s*=\s*\{?(\d{4})", reference(cite))
    return found[1] if found else ""


if __name__ == "__main__":
    main()
