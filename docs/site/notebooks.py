"""Makes a notebook of each lesson of the course, and links it from the lesson's page. Sphinx calls ``setup``.

    python docs/site/notebooks.py FOLDER       # the notebooks alone, written to FOLDER

A Python block of the page becomes a cell with the output that the page shows, a console block a cell with ``!`` before
each command, and everything else text. The answers of exercises, which the page folds, are cells that are closed.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["notebook", "setup", "write"]

HERE = Path(__file__).parents[1]
COURSE = HERE / "course"
BLOCK = re.compile(
    r"^(?:<!-- (?P<note>not run: [^\n]+|exits \d+) -->\n)?```(?P<language>python|console)\n(?P<code>.*?)^```$"
    r"(?:\n\n```text\n(?P<output>.*?)^```$)?"
    r"(?:\n\n(?P<picture>!\[[^\]]*\]\([^)]+\.png\)))?",
    re.MULTILINE | re.DOTALL,
)
"""A fenced block that is run, the text that it prints, and the picture that it draws."""
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+\.png)\)")
FOLD = re.compile(r"</?details>|<summary>(.*?)</summary>")
FRONT = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
OPEN, SHUT = "<details>", "</details>"
FIRST = """*A lesson of the course of structpe, as a notebook. It needs these packages:*

```
pip install 'structpe[all]' jupyterlab
```"""


def notebook(page: Path) -> dict[str, Any]:
    """The page as a notebook of format 4.5."""
    text = FRONT.sub("", page.read_text(encoding="utf-8"))
    title, _, rest = text.strip().partition("\n")
    cells = [{"cell_type": "markdown", "metadata": {}, "source": f"{title}\n\n{FIRST}"}, *_cells(rest, page.parent)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cells(text: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Texts and blocks in turn; inside of an answer, cells of code are closed."""
    last, folded = 0, False
    for found in BLOCK.finditer(text):
        before = text[last : found.start()]
        yield from _prose(before, folder)
        last = found.end()
        folded = before.rfind(OPEN) > before.rfind(SHUT) or (folded and SHUT not in before)
        if (found["note"] or "").startswith("not run"):
            yield from _prose(found[0], folder)
        else:
            yield _code(found, folder, folded)
    yield from _prose(text[last:], folder)


def _prose(text: str, folder: Path) -> Iterator[dict[str, Any]]:
    """A cell of Markdown with its pictures inside, unless there is nothing to say."""
    shown = IMAGE.sub(lambda image: f"![{image[1]}](data:image/png;base64,{_base64(folder / image[2])})", text)
    shown = FOLD.sub(lambda tag: f"**{tag[1]}**" if tag[1] else "", shown).strip()
    if shown:
        yield {"cell_type": "markdown", "metadata": {}, "source": shown}


def _code(block: re.Match[str], folder: Path, folded: bool) -> dict[str, Any]:
    """A cell with its outputs."""
    code = block["code"].rstrip("\n")
    if block["language"] == "console":
        code = re.sub(r"^\$ ", "!", code, flags=re.MULTILINE)
    outputs: list[dict[str, Any]] = []
    if block["output"]:
        outputs.append({"output_type": "stream", "name": "stdout", "text": block["output"]})
    if block["picture"]:
        code += "\npicture"
        (image,) = IMAGE.findall(block["picture"])
        data = {"image/png": _base64(folder / image[1]), "text/plain": image[0]}
        outputs.append({"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None})
    closed = {"jupyter": {"source_hidden": True, "outputs_hidden": True}, "tags": ["answer"]} if folded else {}
    return {"cell_type": "code", "metadata": closed, "source": code, "outputs": outputs, "execution_count": None}


def _base64(file: Path) -> str:
    """The content of a file as text."""
    return base64.b64encode(file.read_bytes()).decode("ascii")


def write(folder: Path) -> None:
    """Write the notebooks of all lessons."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted(COURSE.glob("*.md")):
        (folder / f"{page.stem}.ipynb").write_text(json.dumps(notebook(page), indent=1), encoding="utf-8")


def link(_app: Any, docname: str, source: list[str]) -> None:
    """Offer the notebook below the title of a lesson."""
    if docname.startswith("course/"):
        name = docname.removeprefix("course/")
        offer = f'<a href="{name}.ipynb" download>Download this lesson as a notebook</a>'
        source[0] = re.sub(r"^(# .+\n)", rf"\g<1>\n{offer}\n", source[0], count=1, flags=re.MULTILINE)


def finish(app: Any, error: Exception | None) -> None:
    """Write the notebooks beside the pages."""
    if error is None and app.builder.format == "html":
        write(Path(app.outdir) / "course")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", link)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    write(Path(sys.argv[1]))
