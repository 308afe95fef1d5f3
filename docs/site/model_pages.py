"""Writes a page for each position model and each encoding. ``make docs`` runs it.

    python docs/site/model_pages.py            # docs/catalogue/NAME.md, docs/catalogue/encodings/NAME.md

Git ignores what it writes: a new model must not change a page.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from lines_of_use import MADE, encode_lines, lines, ran
from maps import panels, weight_panels
from numpy.typing import NDArray
from sources import named, source

import structpe
from structpe.attention import KERNELS
from structpe.cli.rows import ModelRow, about
from structpe.encodings import ENCODINGS, UNREACHABLE, WITHIN, Encoding
from structpe.encodings.compiled import slow
from structpe.errors import StructPEError
from structpe.formats import tree
from structpe.pictures import Setting
from structpe.pictures.head_patterns import weights_of
from structpe.pictures.heat import Heat, heat_of
from structpe.pictures.setting import first_layer
from structpe.plain.yaml import to_yaml
from structpe.positions import MODELS, Dims
from structpe.positions.citing import reference
from structpe.structure import Structure, path
from structpe.transforms import grid

__all__ = [
    "KINDS",
    "MADE",
    "encode_lines",
    "encoding_page",
    "encodings",
    "layer",
    "lines",
    "model_page",
    "use",
    "written",
]

HERE = Path(__file__).resolve().parents[1]
TESTS = HERE.parent / "tests"
DIMS, SMALL = Dims(512, 8, 6), Dims(32, 2, 1)
PARSE = tree(
    ["the", "old", "keeper", "lit", "two", "lamps"],
    heads=[3, 3, 4, 0, 6, 4],
    labels=["det", "amod", "nsubj", "root", "num", "obj"],
)
RING = Structure(("C", "C", "N", "C", "C", "O"), [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [4, 5]], directed=False)
KINDS = {
    "a sequence": replace(path(list("abcdef")), relations=("next",) * 5, root=0),
    "a tree": PARSE,
    "a graph": replace(RING, relations=("bond",) * 6),
    "a grid": grid((2, 3)),
}
"""The structures of all pages: a path of six units, a dependency tree, a ring with a tail without order, an image."""
MARKS = {True: "yes", False: "no"}
REFERENCE = {"A": "absolute", "R": "relative", "B": "both"}
INJECTION = {"APE": "input (APE)", "MAM": "attention (MAM)", "both": "input and attention", "-": "neither"}
TASKS = {
    "shakespeare": ("bits 512", "Shakespeare, bits per character at 512"),
    "listops": ("accuracy", "ListOps, accuracy"),
    "zinc": ("MAE", "ZINC stand-in, MAE"),
}


def written(folder: Path) -> dict[Path, str]:
    """All pages."""
    with slow():  # for the reason that layer gives
        pages = {folder / f"{name}.md": model_page(name) for name in MODELS}
        return pages | {folder / "encodings" / f"{name}.md": encoding_page(name) for name in ENCODINGS}


def model_page(name: str) -> str:
    """The page of a position model."""
    row = ModelRow.measured(name, DIMS)
    assert row.spec is not None
    parts = [
        "---\norphan: true\n---",
        f"# {name}: {row.about}",
        f"A position model for {row.spec.structure}s. [All position models](../catalogue.md).",
        f"Source: {source(row.spec.cite)}",
        "## Formula and symbols",
        symbols(MODELS[name]),
        *picture(name),
        "## Structures that it takes",
        "\n".join(takes(name)),
        "## Its row of Table 1",
        "\n".join(table_1(row)),
        "## Kernels, decoding, compiling",
        "\n".join(serves(name, row)),
        "## What it was checked against",
        "\n".join(checked(name)),
        *costs(name),
        "## Use it",
        use(lines(name)),
        *learns(name),
        f"Its class is `{MODELS[name].__module__}.{MODELS[name].__name__}`.",
        f"Its options, with their defaults, as a configuration takes them:\n\n```yaml\n{options(row)}\n```",
        "## BibTeX",
        f"```bibtex\n{reference(row.spec.cite).strip()}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def encoding_page(name: str) -> str:
    """The page of an encoding."""
    encoding = ENCODINGS[name]
    found = [model for model in MODELS if name in encodings(model)]
    used = (
        ", ".join(f"[`{model}`](../{model}.md)" for model in found)
        or "no model by default: give it as the option `encoding`"
    )
    cited = named(encoding.__doc__ or "")
    parts = [
        "---\norphan: true\n---",
        f"# {name}: {about(encoding)}",
        f"A value per {'pair of units' if encoding.arity == 2 else 'unit'}. [All encodings](../../encodings.md).",
        *(f"Source: {source(key)}" for key in cited),
        "## What it computes",
        f"::::{{container}} symbols\n{docstring(encoding, BARE)}\n::::",
        "## Its values on four structures",
        *maps(name),
        "\n".join(answers(name)),
        "## Use it",
        use(encode_lines(name)),
        f"Its class is `{encoding.__module__}.{encoding.__name__}`.",
        f"Its options, with their defaults, as a configuration takes them:\n\n```yaml\n{encoding_options(name)}\n```",
        "## Which position models take it",
        f"By default: {used}.",
        *(["## BibTeX", *(f"```bibtex\n{reference(key).strip()}\n```" for key in cited)] if cited else []),
    ]
    return "\n\n".join(parts) + "\n"


BARE = "   :no-show-inheritance:\n"


def docstring(of: type, more: str = "") -> str:
    """Its docstring, as the API prints it."""
    options = f"   :no-index:\n   :no-members:\n{more}"
    return f"```{{eval-rst}}\n.. autoclass:: {of.__module__}.{of.__qualname__}\n{options}```"


def symbols(model: type) -> str:
    """The docstring of a model, which begins with its formula; the style sheet hides the signature above it."""
    said = docstring(model, BARE)
    return f"::::{{container}} symbols\n{said}\n::::"


@cache
def layer(name: str, kind: str) -> tuple[NDArray[np.float64] | None, frozenset[str] | None]:
    """The attention weights of its first head on a structure, and the terms that its attention uses.

    All units have the same content. Neither where it has an attention of its own, or does not take the structure.
    """
    found: list[Any] = []
    setting = Setting(SMALL, same=True, structure=KINDS[kind])
    with slow():  # compiling kernels for six nodes takes longer than all pages
        tried(lambda: found.append(first_layer(name, setting)))
    if not found:
        return None, None
    weights: list[Any] = []
    tried(lambda: weights.append(weights_of(*found[0])[0, 0]))
    return weights[0].detach().numpy() if weights else None, found[0][2].used()


def picture(name: str) -> list[str]:
    """The pictures of its attention weights, if there are any."""
    shown = {kind: (KINDS[kind].nodes, weights) for kind in KINDS if (weights := layer(name, kind)[0]) is not None}
    if not shown:
        return []
    return [
        "## What it does to attention",
        f"```{{raw}} html\n{weight_panels(shown)}\n```",
        "The attention weights of the first head, a row per query and a column per key, where all units have the same "
        "content: what differs does so by position. The pointer shows a number. Parameters are drawn at random "
        "(normal, deviation 1/√ of their last axis), so the pattern is one of many that the model can have; what "
        "looks equal is equal for all of them. [The four structures](../catalogue.md#the-four-structures).",
    ]


def tried(call: Callable[[], Any]) -> str:
    """An empty text, or why the call was refused."""
    try:
        call()
    except StructPEError as error:
        return str(error)
    return ""


@cache
def encodings(name: str) -> tuple[str, ...]:
    """Names of the encodings that a model takes by default."""
    try:
        return tuple(dict.fromkeys(encoding.name for encoding in structpe.build(name, SMALL).encodings))
    except StructPEError:
        return ()


def takes(name: str) -> Iterator[str]:
    """A table: which structures it takes with its default options."""
    yield "| structure | with its default options |"
    yield "|---|---|"
    for kind, structure in KINDS.items():
        why = "" if layer(name, kind)[0] is not None else tried(lambda of=structure: taken(name, of))  # type: ignore[misc]
        yield f"| {kind} | {cell(f'no: {why}') if why else 'yes'} |"
    mine = [f"[`{each}`](encodings/{each}.md)" for each in encodings(name)]
    if mine:
        yield f"\nIt reads {', '.join(mine)}."
        yield "Where a structure lacks it, another encoding may do: the option `encoding`, if it has one."


def taken(name: str, structure: Structure) -> None:
    """Encode a structure for a model, with what is learned from data, such as labels."""
    structpe.encode([structure], structpe.build(name, SMALL, fit=[structure]).encodings)


def maps(name: str) -> list[str]:
    """The pictures of its values on the structures that it takes; of vectors of pairs, one number, the same in all."""
    found: dict[str, list[Heat]] = {}
    for kind, structure in KINDS.items():
        tried(lambda of=structure, to=kind: found.update({to: heats(name, of)}))  # type: ignore[misc]
    if not found:
        return []
    common = range(min(map(len, found.values())))
    different = [[len(np.unique(each[k].values)) for each in found.values()] for k in common]
    chosen = max(common, key=lambda k: (min(different[k]), sum(different[k])))  # one that says something in each
    shown = {kind: each[chosen] for kind, each in found.items()}
    pairs = ENCODINGS[name].arity == 2
    what = "A row per query and a column per key" if pairs else "A row per unit and a column per number of its value"
    number = f"; shown is number {chosen} of each pair, from 0" if max(map(len, found.values())) > 1 else ""
    special = ", ".join(dict.fromkeys(meaning for of in shown.values() for meaning in of.special))
    return [
        f"```{{raw}} html\n{panels(shown)}\n```",
        f"{what}{number}. The pointer shows a number. Each map has colours of its own."
        f"{f' Cells without a number: {special}.' if special else ''} "
        "[The four structures](../../catalogue.md#the-four-structures). "
        f"In the table: the value{'s of the pairs' if pairs else ''} of the first unit.",
    ]


def heats(name: str, structure: Structure) -> list[Heat]:
    """A map of its values, or several where pairs have vectors: one for each number."""
    (made,) = structpe.encode([structure], [name])
    numbers = made.one(structure).values.shape[1:] if made.arity == 2 else ()
    return [heat_of(structure, made, number) for number in range(int(np.prod(numbers)))]


def answers(name: str) -> Iterator[str]:
    """A table: the values on small structures."""
    yield "| structure | values |"
    yield "|---|---|"
    for kind, structure in KINDS.items():
        found: list[str] = []
        why = tried(lambda of=structure, to=found: to.append(values(ENCODINGS[name], of)))  # type: ignore[misc]
        yield f"| {kind} | {cell(f'no: {why}') if why else found[0]} |"


def values(encoding: type[Encoding], structure: Structure) -> str:
    """The values of the first unit, or of its pairs."""
    (made,) = structpe.encode([structure], [encoding.name])
    encoded = made.one(structure)
    first = np.asarray(encoded.values[0] if made.arity == 1 else encoded.pairs()[0])
    if first.dtype.kind == "f":
        first = first.astype(float).round(2)
    shown = np.array2string(first, separator=", ", threshold=16)
    for number, word in ((UNREACHABLE, "no path"), (WITHIN, "within")):
        shown = re.sub(rf"(?<!\d){number}(?!\d)", word, shown)
    return f"`{' '.join(shown.split())}`"


def cell(text: str) -> str:
    """A text that may stand in a table."""
    return text.replace("|", "&#124;").replace("<", "&lt;").replace("\n", " ")


def table_1(row: ModelRow) -> Iterator[str]:
    """The row of Table 1, ours and the survey's."""
    assert row.spec is not None
    yield "| | reference point | enters at | learnable | at each layer | unbound | parameters |"
    yield "|---|---|---|---|---|---|---|"
    for whose, cells in (("structpe, measured by the tests", row.spec.cells), ("Dufter et al. 2022", row.spec.table1)):
        if cells is not None:
            marks = (MARKS[cells.learnable], MARKS[cells.recurring], MARKS[cells.unbound])
            where = f"{REFERENCE[cells.reference]} | {INJECTION[cells.injection]}"
            yield f"| {whose} | {where} | {' | '.join(marks)} | `{cells.params}` |"
    if row.parameters is not None:
        sizes = "".join(f", {letter} = {size:,}" for letter, size in row.sizes.items())
        yield f"\nParameters at d = {DIMS.width}, h = {DIMS.heads}, l = {DIMS.layers}{sizes}: {row.parameters:,}."
    if row.spec.note:
        yield f"\n{'Where the two differ' if row.spec.table1 else 'Note'}: {row.spec.note}."
    if row.spec.table1 is None:
        yield "\nThe survey has no such row."


def serves(name: str, row: ModelRow) -> Iterator[str]:
    """Kernels, decoding, torch.compile and torch.export."""
    assert row.spec is not None
    for used in (layer(name, kind)[1] for kind in KINDS if layer(name, kind)[0] is not None):
        assert used is not None
        able = [kernel for kernel, each in KERNELS.items() if each.can(used)]
        fields = ", ".join(f"`{each}`" for each in sorted(used)) or "none"
        kernels = ", ".join(f"`{each}`" for each in able)
        yield f"* Terms of its attention: {fields}; kernels that compute them: {kernels}."
        break
    else:
        yield "* It has an attention of its own, which no kernel of the library computes."
    decodes = {
        True: "A decoder can use it.",
        False: "A decoder cannot use it.",
        None: "Whether a decoder can use it depends on its options.",
    }
    yield f"* {decodes[row.decodes]}"
    for what, why in (("torch.compile", row.spec.not_compiled), ("torch.export", row.spec.not_exported)):
        yield f"* `{what}`: {f'not as one graph: {why}' if why else 'as one graph'}."


def checked(name: str) -> Iterator[str]:
    """What its outputs were compared with, and the tests that name it."""
    given = [entry for entry in golden().values() if name in entry.get("models", ())]
    for entry in given:
        code = "; ".join(
            f"{each.get('repository') or each['package']} {each.get('commit') or each['version']} ({each['code']})"
            for each in entry["sources"]
        )
        yield f"* Numbers made by {entry['by']}: {code}."
    if not given:
        yield "* The repository has no numbers of the authors' code for it."
    if found := tests_of(name):
        yield f"* Tests that name it: {', '.join(f'`tests/positions/{each}`' for each in found)}."
    yield (
        "* The laws that all models are tested for: every kernel against the plain one in values and gradients, its "
        "row of Table 1 and its count of parameters measured, decoding step by step against all at once, saving and "
        "loading, padded against one by one."
    )


@cache
def golden() -> dict[str, Any]:
    """The index of the golden numbers: who made them, and which models must give them."""
    found: dict[str, Any] = json.loads((TESTS / "golden" / "INDEX.json").read_text(encoding="utf-8"))
    return found


def tests_of(name: str) -> list[str]:
    """Test files that name the model or its class."""
    words = (f'"{name}"', f" {MODELS[name].__name__}(", f"({MODELS[name].__name__}(")
    return [file for file, text in test_texts().items() if any(word in text for word in words)]


@cache
def test_texts() -> dict[str, str]:
    """The test files of position models."""
    files = sorted((TESTS / "positions").glob("test_*.py"))
    return {file.name: file.read_text(encoding="utf-8") for file in files}


@cache
def compared() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The results of docs/comparison.md: by task and model, one entry per seed."""
    folder = str(HERE.parent / "experiments" / "catalogue")
    sys.path.insert(0, folder)
    try:
        from results import read

        found: dict[str, dict[str, list[dict[str, Any]]]] = read()
        return found
    finally:
        sys.path.remove(folder)


def costs(name: str) -> list[str]:
    """What it takes, and what it reached in the comparison."""
    lines = []
    for run in compared()["cost"].get(name, [])[:1]:
        told = {key: run[key] for key in ("time", "memory") if run.get(key) is not None}
        lines += [
            f"| {key} of a training step, relative to no positions | {value:.2f} |" for key, value in told.items()
        ]
    for task, (metric, title) in TASKS.items():
        scores = [
            run["scores"][metric]
            for run in compared()[task].get(name, [])
            if run.get("scores", {}).get(metric) is not None
        ]
        if scores:
            lines.append(f"| {title} ({len(scores)} seed{'s' * (len(scores) > 1)}) | {statistics.fmean(scores):.3g} |")
    if not lines:
        return []
    head = "| measured | |\n|---|--:|\n"
    return [
        "## Cost and results",
        head + "\n".join(lines),
        "One small model and a short training: [how, and all others](../comparison.md). One seed ranks nothing.",
    ]


def options(row: ModelRow) -> str:
    """Its options as YAML."""
    return to_yaml({"name": row.name, **row.options}).strip()


def learns(name: str) -> Iterator[str]:
    """What it learns from structures before it is trained."""
    found = {each.name: each for each in structpe.build(name, SMALL).encodings if each.learns}
    for encoding in found:
        bare = " Graphs without labels of edges need no fit." if encoding == "label-path" else ""
        yield (
            f"[`{encoding}`](encodings/{encoding}.md) has a vocabulary: give training structures, `fit=structures`, "
            f"or fit a model that was built without them, `model = model.fit(structures)`.{bare}"
        )


def encoding_options(name: str) -> str:
    """Its options as YAML; what has no default is null."""
    given = {of.name: None if of.default is MISSING else of.default for of in fields(ENCODINGS[name])}
    return to_yaml({"name": name, **given}).strip()


def use(program: str) -> str:
    """A program, and what it prints."""
    return f"```python\n{program}```\n\n```text\n{ran(program)}```"


def main() -> None:
    """Write what has changed, and remove what is of no model."""
    folder = HERE / "catalogue"
    (folder / "encodings").mkdir(parents=True, exist_ok=True)
    pages = written(folder)
    for file, text in pages.items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    for file in {*folder.glob("*.md"), *folder.glob("encodings/*.md")} - pages.keys():
        file.unlink()
    draw(folder / "figures")


def draw(folder: Path) -> None:
    """The four structures, drawn as all pictures of the library; what is newer than this file is kept."""
    from structpe.pictures import save, show

    folder.mkdir(exist_ok=True)
    for kind, structure in KINDS.items():
        file = folder / f"{kind.removeprefix('a ')}.svg"
        if not file.is_file() or file.stat().st_mtime < Path(__file__).stat().st_mtime:
            drawn = replace(structure, name=kind, **({"root": None, "relations": ()} if kind == "a sequence" else {}))
            save(show(drawn), file)


if __name__ == "__main__":
    main()
