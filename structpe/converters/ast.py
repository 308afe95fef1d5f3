"""Python's ``ast``: syntax trees of source code. ``as_structure(ast.parse(source))``."""

from __future__ import annotations

from structpe.converters._syntax import of_syntax
from structpe.converters.base import add_converter

__all__: list[str] = []

add_converter("ast", "ast.AST", "syntax trees of Python", of_syntax)
