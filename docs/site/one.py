"""Builds one page alone, in seconds: what a writer looks at while writing.

    make docs PAGE=docs/parsing.md           # build/page/parsing.html
    make docs PAGE=docs/catalogue/t5.md      # the page of a model, which is made
    make docs PAGE=docs/api/structpe.nn.rst  # the page of a part of the API, which is made, too
    make docs PAGE=docs/gallery/FOLDER/plot_01_parse.py

Links to other pages lead nowhere, and there is no sidebar: ``make docs`` checks these.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

__all__ = ["arguments", "main"]

DOCS = Path(__file__).parents[1]
OUT = DOCS.parent / "build" / "page"


def arguments(given: str) -> tuple[list[str], Path]:
    """What Sphinx is called with for a page, and what it writes."""
    try:
        page = Path(given).resolve().relative_to(DOCS)
    except ValueError:
        raise SystemExit(f"{given} is no page: give a file in {DOCS.name}/, such as PAGE=docs/parsing.md") from None
    if page.suffix == ".py":
        inside = page.relative_to("gallery").with_suffix("")
        name = Path("auto_gallery") / inside
        only = ["-t", "gallery", "-D", "include_patterns=auto_gallery/**", "-D", "root_doc=auto_gallery/index"]
        only += ["-D", f"sphinx_gallery_conf.filename_pattern={inside.name}"]
    else:
        name = page.with_suffix("")
        make(page)
        only = ["-D", f"include_patterns={page}", "-D", f"root_doc={name}", *(["-t", "api"] * (page.parts[0] == "api"))]
    return ["-q", "-t", "pages", "-t", "one", *only, str(DOCS), str(OUT)], OUT / f"{name}.html"


def make(page: Path) -> None:
    """Write the page of a model or an encoding, which is made from the registry; any other must be there."""
    file = DOCS / page
    if page.parts[0] == "catalogue":
        import model_pages  # slow to import

        of = model_pages.encoding_page if "encodings" in page.parts else model_pages.model_page
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(of(page.stem), encoding="utf-8")
    elif page.parts[0] != "api" and not file.is_file():
        raise SystemExit(f"there is no page {page}; PAGE is a Markdown file of docs/, or a program of docs/gallery/")


def main() -> int:
    """Build the page."""
    given, page = arguments(sys.argv[1])
    code: int = sphinx(given)
    print(page)
    return code


if __name__ == "__main__":
    sys.exit(main())
