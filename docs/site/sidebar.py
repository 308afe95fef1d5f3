"""The sidebar: groups of pages that fold, without a program in the page; that of the page is open.

Pages of models, and those of the API, are not listed, because they would fill it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

__all__ = ["folded", "menu"]

CAPTION = re.compile(r'<p class="caption" role="heading"><span class="caption-text">(.*?)</span></p>')
UNLISTED = ("catalogue/", "api/")
"""Folders of pages that the sidebar does not list; they belong to the group of the catalogue and the API."""


def menu(menus: dict[Any, str], app: Any, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Fold the groups of the sidebar; make it once for all pages of a folder that it does not list."""
    make: Callable[..., str] | None = context.get("toctree")
    if make is None:
        return
    listed = {name for names in app.env.toctree_includes.values() for name in names} | {app.config.root_doc}

    def made(**how: Any) -> str:
        key = (page if page in listed else page.rpartition("/")[0], *sorted(how.items()))
        if key not in menus:
            menus[key] = folded(make(**how) or "", "Reference" if page.startswith(UNLISTED) else "Start")
        return menus[key]

    context["toctree"] = made


def folded(tree: str, otherwise: str) -> str:
    """The tree of all pages with each caption as the head of what folds; one is open, with or without the page."""
    first, *rest = CAPTION.split(tree)
    groups = list(zip(rest[::2], rest[1::2], strict=True))
    inside = next((name for name, pages in groups if 'class="current' in pages), otherwise)
    return first + "".join(
        f'<details class="group"{" open" * (name == inside)}><summary>{name}</summary>{pages.strip()}</details>\n'
        for name, pages in groups
    )
