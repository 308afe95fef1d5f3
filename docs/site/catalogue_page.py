"""Prints the page catalogue.md: every position model with its row of Table 1. ``make docs`` runs it."""

from __future__ import annotations

from collections.abc import Iterator

from sources import field

from structpe.cli.rows import ModelRow
from structpe.positions import MODELS, Dims
from structpe.positions.citing import reference

HEAD = """\
---
hide-toc: true
---

# Position encodings for Transformers: the catalogue of all {count} models

Each name leads to a page with the formula, what the model does to attention on a sequence, a tree, a graph and a grid,
its kernels, costs, tests and citation. Choose values above the table to see fewer rows, or search for a model, a word,
an author or a title.

"""
TAIL = """

## What the columns say

The cells are those of the survey's Table 1 (Dufter, Schmitt and Schütze 2022): the *reference* point, absolute (A),
relative (R) or both (B); where the model *enters*, at the input (APE), in attention (MAM), both or neither; whether
numbers are *learned*; *unbound*, whether inputs of any length are distinguished. They are claims about the models of
structpe, and a test measures each of them; where the survey has another cell, the model's page says so. *Decodes*:
whether a decoder, which writes unit by unit, can use it; it may depend on options. *Parameters* are counted at
d = {dims.width}, h = {dims.heads}, l = {dims.layers}. `structpe positions` prints the same for other sizes, and
`structpe cite t5` whom to cite.

## The four structures

The pages of models and encodings use these: a path of six units, a dependency tree, a ring with a tail and no reading
order, as in a molecule, and an image of two rows and three columns.

![a sequence of six units](catalogue/figures/sequence.svg)
![a dependency tree of six words](catalogue/figures/tree.svg)
![a ring of five atoms with a sixth beside it](catalogue/figures/graph.svg)
![a grid of two rows and three columns](catalogue/figures/grid.svg)
"""
COLUMNS = ("model", "what it is", "for", "year", "reference", "enters", "learned", "unbound", "decodes", "parameters")
DIMS = Dims(512, 8, 6)
ENTERS = {"-": "neither"}
FLAG = {True: "yes", False: "no", None: "depends"}


def main() -> None:
    """Print the page."""
    print(HEAD.format(count=len(MODELS)))
    print("\n".join(table()))
    print(TAIL.format(dims=DIMS))


def table() -> Iterator[str]:
    """A row per model."""
    yield ":::{table}\n:class: filtered\n"
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * (len(COLUMNS) - 1)}--:|"
    for name in sorted(MODELS):
        row = ModelRow.measured(name, DIMS)
        if row.spec is None:
            continue
        ours = row.spec.cells
        count = "" if row.parameters is None else f"{row.parameters:,}"
        flags = (FLAG[ours.learnable], FLAG[ours.unbound], FLAG[row.decodes])
        enters = ENTERS.get(ours.injection, ours.injection)
        entry = reference(row.spec.cite)
        unseen = f'<span class="unseen">{field(entry, "author")} {field(entry, "title")}</span>'
        cells = (f"[`{name}`](catalogue/{name}.md)", f"{row.about} {unseen}", row.spec.structure, field(entry, "year"))
        cells += (ours.reference, enters, *flags, count)
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
    yield ":::"


if __name__ == "__main__":
    main()
