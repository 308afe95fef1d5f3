"""The directive ``formula`` of Markdown pages: lines as in docstrings, s_ij = q_i.k_j, shown as MathML.

A reader of the file, also on a page of the repository, sees them as they are written. Sphinx calls ``setup``.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from typeset import display_lines

__all__ = ["Formula", "setup"]


class Formula(Directive):
    """Lines of formulas; see :func:`typeset.display_lines`."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The formulas."""
        return [nodes.raw("", display_lines([line for line in self.content if line.strip()]), format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("formula", Formula)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
