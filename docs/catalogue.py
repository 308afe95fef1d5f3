"""Prints the page catalogue.md: every position model with its row of Table 1. ``make docs`` runs it."""

from __future__ import annotations

from collections.abc import Iterator

from structpe.cli.positions import STRUCTURES, SURVEY, Row
from structpe.positions import MODELS, Dims

HEAD = """\
# The catalogue

Every position model of the library, generated from the code when these pages are built. The
cells are those of the survey's Table 1 (Dufter, Schmitt and Schütze 2022). They are claims about the models of
structpe, and a test measures each of them. If the survey's cell differs, it is in brackets, with the reason below the
table.

Ref: reference point, A absolute, R relative, B both. Inj: what it changes, the input (APE), attention (MAM), both, or
neither. L: learnable. Rec: recurring at each layer. U: unbound. #Param: our formula in d, h, l, dh = d/h and the
model's own sizes; the count at d = {dims.width}, h = {dims.heads}, l = {dims.layers}; the survey's formula and its
value ({letters}, d1 = d/2). `structpe positions` prints the same for other sizes. The docstring of a model has its
formula, sources and differences from them, `help(structpe.positions.T5)`; `structpe cite t5` prints whom to cite.
"""
TITLES = {"sequence": "Sequences", "grid": "Grids", "tree": "Trees", "graph": "Graphs"}
DIMS = Dims(512, 8, 6)


def main() -> None:
    """Print the page."""
    letters = ", ".join(f"{letter} = {size:,}" for letter, size in SURVEY.items())
    print(HEAD.format(dims=DIMS, letters=letters))
    rows = [Row.measured(name, DIMS) for name in MODELS]
    for structure in STRUCTURES:
        mine = [row for row in rows if row.spec is not None and row.spec.structure == structure]
        print("\n".join(section(TITLES[structure], mine)))


def section(title: str, rows: list[Row]) -> Iterator[str]:
    """A heading, a table, and why cells differ."""
    yield f"## {title}\n"
    yield "| model | what it is | Ref | Inj | L | Rec | U | #Param | count | survey's #Param |"
    yield "|---|---|---|---|---|---|---|---|--:|---|"
    for row in rows:
        _, name, *marks, formula, count, printed = row.cells()
        cells = [f"`{name}`", row.about, *marks, f"`{formula}`", count, f"`{printed}`" if printed else ""]
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
    yield ""
    for row in rows:
        if row.spec and row.spec.note:
            yield f"- `{row.name}`: {row.spec.note}"
        if row.problem:
            yield f"- `{row.name}`: {row.problem}"
    yield ""


if __name__ == "__main__":
    main()
