"""Syntax trees of Python source code: ``as_structure(ast.parse(source))``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from structpe.formats.converting import ConversionError, add_converter
from structpe.structure import Structure

__all__ = ["of_source", "of_syntax"]

LONGEST = 80
"""Characters of a constant in a label; longer ones are cut."""


def of_source(text: str, name: str = "") -> Structure:
    """The syntax tree of Python source code; see :func:`of_syntax`.

    Raises:
        ConversionError: it is not Python.
    """
    try:
        return of_syntax(ast.parse(text), name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConversionError(f"the text is not Python that can be parsed ({error}); correct it").at(
            *([name] if name else [])
        ) from None


def of_syntax(tree: ast.AST, name: str = "", context: bool = False) -> Structure:
    """A syntax tree: a node per node of ``ast``, labelled by its class, and one per identifier and constant.

    Edges lead from a node to its parts, with the name of the field as relation. Nodes are in the order of a depth-first
    walk, which follows the source code closely; it is the reading order. The root is the given node.

    Args:
        tree: any node, such as that of ``ast.parse``.
        name: where it comes from, for error messages.
        context: whether ``Load``, ``Store`` and ``Del`` are nodes.
    """
    labels: list[str] = []
    edges: list[tuple[int, int]] = []
    relations: list[str] = []
    waiting: list[tuple[object, int, str]] = [(tree, -1, "")]
    while waiting:
        part, parent, field = waiting.pop()
        number = len(labels)
        labels.append(_label(part))
        if parent >= 0:
            edges.append((parent, number))
            relations.append(field)
        if isinstance(part, ast.AST):
            inner = [
                (each, number, named)
                for named, each in _parts(part)
                if context or not isinstance(each, ast.expr_context)
            ]
            waiting.extend(reversed(inner))
    return Structure(
        tuple(labels),
        np.array(edges, dtype=np.int64).reshape(-1, 2),
        tuple(relations),
        order=np.arange(len(labels)),
        root=0,
        name=name,
    )


def _parts(node: ast.AST) -> Iterator[tuple[str, object]]:
    for field, value in ast.iter_fields(node):
        # A constant None is a part, a field that is left out is not.
        if value is None and not (isinstance(node, ast.Constant) and field == "value"):
            continue
        for each in value if isinstance(value, list) else [value]:
            yield field, each


def _label(part: object) -> str:
    if isinstance(part, ast.AST):
        return type(part).__name__
    text = part if isinstance(part, str) else repr(part)
    return text[:LONGEST] or repr(text)


add_converter("ast", "ast.AST", "syntax trees of Python", of_syntax)
