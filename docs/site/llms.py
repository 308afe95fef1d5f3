"""``llms.txt``: the pages of the documentation as a list in plain text, with a line on each, for programs.

``llms-full.txt`` has the texts of the pages themselves, without those of single models. Both lie at the root.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

__all__ = ["entries", "write_llms"]

HEAD = """\
# structpe

> Structural position information for Transformers in PyTorch. Sequences, trees and graphs become positions; {models}
> position models turn them into changes of attention or of its input; any kernel computes these. It is not on a package
> index yet: pip install . in a clone.

The Python blocks of the pages are run as tests. Links lead to pages; llms-full.txt has their texts.
"""
LISTED = re.compile(r"^(?!catalogue/|api/|auto_gallery/)")


def entries(source: Path, names: list[str]) -> list[tuple[str, str, str]]:
    """For each page that is written in Markdown: its name, its title, and its first sentence."""
    found = []
    for name in names:
        file = source / f"{name}.md"
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            title = re.search(r"^# (.+)$", text, re.MULTILINE)
            found.append((name, title[1] if title else name, sentence(text)))
    return found


def sentence(text: str) -> str:
    """The first sentence of running text, without markup."""
    for part in text.split("\n\n"):
        if re.match(r"[A-Z*`\[]", part) and "```" not in part:
            plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(part.split())).replace("**", "")
            return re.split(r"(?<=[.:]) ", plain)[0]
    return ""


def write_llms(app: Any, error: Exception | None) -> None:
    """Called by Sphinx when all pages are built."""
    if error is not None or app.builder.format != "html":
        return
    from structpe.positions import MODELS

    source, out, names = Path(app.srcdir), Path(app.outdir), sorted(app.env.found_docs)
    parts = [HEAD.format(models=len(MODELS))]
    for head, which in (("Pages", True), ("Position models and encodings", False)):
        chosen = [name for name in names if bool(LISTED.match(name)) is which]
        lines = [f"- [{title}]({name}.html): {said}" for name, title, said in entries(source, chosen)]
        parts.append(f"## {head}\n\n" + "\n".join(lines) + "\n")
    (out / "llms.txt").write_text("\n".join(parts), encoding="utf-8")
    pages = [source / f"{name}.md" for name in names if LISTED.match(name)]
    texts = [f"<!-- {page.stem} -->\n\n{page.read_text(encoding='utf-8')}" for page in pages if page.is_file()]
    (out / "llms-full.txt").write_text("\n\n".join(texts), encoding="utf-8")
