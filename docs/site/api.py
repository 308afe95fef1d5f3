"""Writes the pages of the API: a page for each part of the library, of its public names only.

Each page begins with a table of all names with their signatures; each name has its docstring and an example, which is
taken from the pages of the documentation, whose programs are tests. ``make docs`` runs it; git ignores what it writes.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from structpe.encodings import ENCODINGS
from structpe.positions import MODELS, PositionModel

__all__ = ["INNER", "PARTS", "Example", "examples", "public", "signature", "without_example", "written"]

HERE = Path(__file__).parents[1]
PARTS = {
    "": "The names that most programs need; each is imported when it is first used.",
    "structure": "A labelled graph whose nodes own units.",
    "formats": "From files and objects of other libraries to structures, and back.",
    "transforms": "From a structure to another: Levi graph, linear form, units.",
    "parsing": "From sentences to trees and their positions.",
    "encodings": "What is computed from a structure, per unit or pair.",
    "positions": "Position models: which numbers represent a position, and where they enter.",
    "terms": "What changes in attention.",
    "attention": "Kernels: how attention with terms is computed.",
    "data": "Batches, stores and buckets of encoded structures.",
    "adapters.transformers": "Position models inside models of Hugging Face.",
    "adapters.pytorch": "Position models inside models of PyTorch.",
    "adapters.pyg": "Position models inside models of PyG; encodings as transforms of its data.",
    "adapters.dgl": "Encodings as transforms of graphs of DGL.",
    "adapters.timm": "Position models inside models of timm.",
    "nn": "Transformers, message passing and their layers.",
    "objectives": "What is predicted: targets, losses and metrics.",
    "datasets": "Data sets: cards, downloads, checks; splits for the prediction of graphs, nodes and links.",
    "tasks": "Training, generation, studies.",
    "pictures": "Figures of structures, positions and learned biases.",
    "errors": "Errors: each says what was given, what is needed, and what to do.",
}
"""The parts of the library in the order in which the API names them; the first is the package itself."""
INNER = {"cli", "code", "computed", "faces", "plain", "precision", "registry", "spec", "dropout", "system", "serve"}
"""Parts that have no page: users do not call them."""
MADE = {"api", "auto_gallery", "catalogue"}
BESIDE = {
    "structpe.load": [
        "structpe.tasks.Generator",
        "structpe.tasks.Generated",
        "structpe.tasks.Predictor",
        "structpe.nn.EncoderDecoder",
    ],
    "structpe.train": ["structpe.tasks.Result", "structpe.tasks.Outcome", "structpe.tasks.explain"],
    "structpe.inject": [
        "structpe.eject",
        "structpe.adapters.dgl.DglHost",
        "structpe.adapters.dgl.positions",
        "structpe.adapters.pyg.Message",
        "structpe.adapters.pyg.PygHost",
        "structpe.adapters.pyg.of_edges",
        "structpe.adapters.pytorch.PytorchHost",
        "structpe.adapters.timm.TimmHost",
        *(f"structpe.adapters.transformers.{name}" for name in ("Collator", "FAMILIES", "HuggingFaceHost", "asked")),
        *(f"structpe.adapters.transformers.{name}" for name in ("quietly", "register", "restore")),
    ],
    "structpe.Batch": ["structpe.data.Sampler", "structpe.data.Store", "structpe.data.collate"],
    "structpe.datasets.get": [f"structpe.datasets.{name}" for name in ("Report", "benchmark", "find", "load")],
    "structpe.parsing.parse": [f"structpe.parsing.{name}" for name in ("Progress", "evaluate", "parse_texts", "train")],
    "structpe.pictures.view": ["structpe.pictures.load"],
}
"""What a call returns or works with, by the call whose example shows it."""
LONGEST = 14
"""Lines of an example."""
CLASS = re.compile(r"=<class '[\w.]*?(\w+)'>")
DEFAULT = re.compile(r"=(?:<factory>|<function .*? at 0x\w+>)")
"""Defaults that say nothing: functions, and what is made anew for each call."""
BLOCK = re.compile(r"^(<!-- not run: [^\n]+ -->\n)?```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """Lines of a page that use a name."""

    code: str
    page: str


def module(part: str) -> ModuleType:
    """A part."""
    return import_module(f"structpe.{part}" if part else "structpe")


def public(part: str) -> dict[str, Any]:
    """The public names of a part and what they are."""
    home = module(part)
    if part == "errors":
        return {
            name: each
            for name, each in vars(home).items()
            if inspect.isclass(each) and each.__module__ == home.__name__
        }
    return {name: getattr(home, name) for name in sorted(home.__all__, key=str.lower)}


@cache
def homes() -> dict[int, str]:
    """By its identity, where each thing is documented: the first part that exports it, with its name."""
    found: dict[int, str] = {}
    for part in PARTS:
        for name, each in public(part).items():
            found.setdefault(id(each), f"{module(part).__name__}.{name}")
    return found


def signature(name: str, of: Any) -> str:
    """How it is called, without annotations; the name alone of what is not called."""
    called = of.__init__ if inspect.isclass(of) and issubclass(of, PositionModel) else of
    try:
        parameters = list(inspect.signature(called).parameters.values())[called is not of :]
    except (TypeError, ValueError):
        return name
    if not callable(of) or (inspect.isclass(of) and issubclass(of, BaseException)):
        return name
    told = inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in parameters])
    return name + DEFAULT.sub("=...", CLASS.sub(r"=\1", str(told)))


@cache
def examples() -> dict[str, Example]:
    """By the dotted name under which it is documented, the shortest lines of a page that use a thing."""
    found: dict[str, Example] = {}
    pages = [page for page in HERE.rglob("*.md") if page.relative_to(HERE).parts[0] not in MADE]
    for page in sorted(pages, key=lambda page: page.name != "api_examples.md"):
        bound: dict[str, tuple[str, Any]] = {}
        for _, text in (block for block in BLOCK.findall(page.read_text(encoding="utf-8")) if not block[0]):
            for statement in pieces(ast.parse(text)):
                bound |= imported(statement)
                for thing, lines in uses(statement, bound):
                    name = homes().get(thing)
                    code = lines + (ast.get_source_segment(text, statement) or "")
                    if name and code.count("\n") < LONGEST and better(code, found.get(name), page):
                        found[name] = Example(code, str(page.relative_to(HERE).with_suffix("")))
    return found


def pieces(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a program; of one that is too long for an example, those in it, too."""
    for statement in getattr(tree, "body", []):
        yield statement
        if statement.end_lineno - statement.lineno >= LONGEST:
            yield from pieces(statement)


def better(code: str, known: Example | None, page: Path) -> bool:
    """Whether lines are a better example: those that were written for it, then the shorter."""
    if known is None:
        return True
    return known.page != "api_examples" and page.name != "api_examples.md" and len(code) < len(known.code)


def imported(statement: ast.stmt) -> dict[str, tuple[str, Any]]:
    """The names that a statement imports from the library: the line that does it, and what they are."""
    found: dict[str, tuple[str, Any]] = {}
    if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("structpe"):
        for each in statement.names:
            line = f"from {statement.module} import {each.name}{f' as {each.asname}' if each.asname else ''}"
            try:
                found[each.asname or each.name] = (line, attribute(import_module(statement.module or ""), each.name))
            except ImportError:  # of a library that is not installed
                continue
    if isinstance(statement, ast.Import):
        found |= (
            {"structpe": ("import structpe", import_module("structpe"))}
            if statement.names[0].name == "structpe"
            else {}
        )
    return found


def attribute(of: ModuleType, name: str) -> Any:
    """What a package exports under a name, or its module of that name."""
    return getattr(of, name) if hasattr(of, name) else import_module(f"{of.__name__}.{name}")


def uses(statement: ast.stmt, bound: dict[str, tuple[str, Any]]) -> Iterator[tuple[int, str]]:
    """What of the library a statement uses, by identity, and the imports that it needs."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return
    names = {each.id for each in ast.walk(statement) if isinstance(each, ast.Name) and each.id in bound}
    lines = "".join(
        f"{line}\n" for line in sorted({bound[name][0] for name in names}, key=lambda line: (line[0] == "f", line))
    ) + "\n" * bool(names)
    for each in ast.walk(statement):
        thing = resolved(each, bound)
        if thing is not None:
            yield id(thing), lines


def resolved(node: ast.AST, bound: dict[str, tuple[str, Any]]) -> Any:
    """What a name, or an attribute of the package, stands for."""
    if isinstance(node, ast.Name) and node.id in bound:
        return bound[node.id][1]
    if isinstance(node, ast.Attribute):
        of = resolved(node.value, bound)
        return getattr(of, node.attr, None) if inspect.ismodule(of) else None
    return None


def without_example() -> list[str]:
    """The public names that have no example, nor a neighbour whose example shows them; errors need none."""
    needed = {name for name in homes().values() if ".errors." not in name and not name.endswith("Error")}
    return sorted(needed - {*examples()} - {name for names in BESIDE.values() for name in names})


def written(escape: Any) -> dict[str, str]:
    """The pages as reStructuredText, by name; ``escape`` makes a line of a docstring such text."""
    pages = {title(part): page(part, escape) for part in PARTS}
    rows = "".join(f"   * - :doc:`{title(part)} <{title(part)}>`\n     - {about}\n" for part, about in PARTS.items())
    tree = "".join(f"   {title(part)} <{title(part)}>\n" for part in PARTS)
    said = (
        "Public names only: what these pages have is what a release promises. Annotations have shapes:\n"
        '``Float[Tensor, "b h n d"]`` is a tensor of floats with b graphs, h heads, n units and d numbers each.\n'
        "Position models and encodings have pages of their own: :doc:`the catalogue </catalogue>`.\n\n"
        ".. list-table::\n\n"
    )
    return pages | {"index": f"API\n===\n\n{said}{rows}\n.. toctree::\n   :hidden:\n\n{tree}"}


def title(part: str) -> str:
    """The name of a part as it is imported."""
    return f"structpe.{part}" if part else "structpe"


def page(part: str, escape: Any) -> str:
    """The page of a part: what it is, a table of its names, and each name."""
    head = title(part)
    names = public(part)
    module_said = f".. automodule:: {head}\n   :no-members:\n" if part else ""
    text = [f"{head}\n{'=' * len(head)}\n\n{PARTS[part]}\n", table(names, escape), module_said]
    if part in ("encodings", "positions"):
        text.append(registered(MODELS if part == "positions" else ENCODINGS, part))
    for name, of in names.items():
        if homes()[id(of)] == f"{head}.{name}":
            text.append(entry(head, name, of))
    return "\n".join(text)


def table(names: dict[str, Any], escape: Any) -> str:
    """The names with their signatures, and the first line that is said of each."""
    rows = [".. list-table::", "   :class: signatures", "   :header-rows: 1", "", "   * - name", "     - what it is"]
    for name, of in names.items():
        place = homes()[id(of)]
        link = f":ref:`{name} <{label(place)}>`"
        call = signature(name, of).removeprefix(name)
        shown = f"{link} ``{call}``" if call else link
        rows += [f"   * - {shown}", f"     - {escape(first_line(of))}"]
    return "\n".join([*rows, ""])


def label(place: str) -> str:
    """Where links lead; docutils does not tell small letters from capitals, as in ``reader`` and ``Reader``."""
    return f"{place}.class" if place.rpartition(".")[2][:1].isupper() else place


def first_line(of: Any) -> str:
    """The first line of a docstring; of a value, its type."""
    if isinstance(of, int | str | tuple | frozenset | dict):
        return f"A constant, ``{of!r}``." if len(repr(of)) < 40 else "A constant."
    return (inspect.getdoc(of) or "").strip().partition("\n")[0]


def entry(home: str, name: str, of: Any) -> str:
    """The docstring of a name, and its example."""
    place = f"{home}.{name}"
    text = f".. _{label(place)}:\n\n{name}\n{'-' * len(name)}\n\n"
    if inspect.isclass(of):
        text += f".. autoclass:: {place}\n   :members:\n\n"
    elif inspect.isroutine(of):
        text += f".. autofunction:: {place}\n\n"
    else:
        text += f".. py:data:: {place}\n\n   {first_line(of)}\n\n"
    found = examples().get(place)
    beside = next((other for other, names in BESIDE.items() if place in names), None)
    if not found and beside:
        text += f"An example of its use is that of :ref:`{beside.rpartition('.')[2]} <{label(beside)}>`.\n"
    if found:
        code = "\n".join(f"   {line}".rstrip() for line in found.code.splitlines())
        text += f".. rubric:: Example\n\n.. code-block:: python\n\n{code}\n\n"
        text += f"From :doc:`/{found.page}`, after the lines that stand there.\n"
    return text


def registered(registry: Any, part: str) -> str:
    """The names in a registry, with the page of each."""
    folder = "/catalogue/" if part == "positions" else "/catalogue/encodings/"
    links = ", ".join(f":doc:`{name} <{folder}{name}>`" for name in sorted(registry))
    return f"Registered names, as ``structpe.{'build' if part == 'positions' else 'encode'}`` takes them: {links}.\n"
