"""Configuration of Sphinx: the Markdown pages, a gallery that is run, and the API from the docstrings.

make docs                                  # build/docs/index.html; a warning is an error; needs no network
make docs PAGE=docs/parsing.md             # one page, in seconds: build/page/parsing.html
make look                                  # the built pages in a browser: width, contrast, keyboard, search
python -m sphinx -t pages docs build/docs  # the Markdown alone
"""

from __future__ import annotations

import gc
import importlib
import inspect
import io
import json
import re
import runpy
import sys
from contextlib import redirect_stdout
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any
from weakref import WeakSet

HERE = Path(__file__).parent
sys.path.append(str(HERE / "site"))  # for the modules that make pages; last, so that none hides a package

import api  # noqa: E402
from inherited import inherited  # noqa: E402
from inventories import known  # noqa: E402
from llms import write_llms  # noqa: E402
from sidebar import menu  # noqa: E402
from sphinx.util.nodes import make_refnode  # noqa: E402
from typeset import display, display_lines, indexed  # noqa: E402

from structpe.encodings import ENCODINGS  # noqa: E402
from structpe.positions import MODELS, PositionModel  # noqa: E402

project = "structpe"
author = "The structpe developers"
project_copyright = "the structpe developers, Apache-2.0"
release = metadata.version("structpe")

ALL = not tags.has("pages")  # type: ignore[name-defined]  # noqa: F821, as Sphinx puts it here
ONE = tags.has("one")  # type: ignore[name-defined]  # noqa: F821
API = ALL or tags.has("api")  # type: ignore[name-defined]  # noqa: F821
GALLERY = ALL or tags.has("gallery")  # type: ignore[name-defined]  # noqa: F821
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser", "sphinx_copybutton", "sphinx_design"]
extensions += ["sphinx.ext.intersphinx"] if ALL else []
extensions += ["sphinx_gallery.gen_gallery"] if GALLERY else []
extensions += (
    ["formulas", "words"] if ONE else ["notebooks", "cheatsheet", "formulas", "live", "words"]
)  # of docs/site: lessons to download, pages, formulas, words to find
exclude_patterns = [
    *([] if API else ["api"]),
    *([] if GALLERY else ["auto_gallery"]),
    "gallery",
    "auto_gallery/*.ipynb",
    "auto_gallery/*.zip",
    "sg_execution_times.rst",
]
suppress_warnings = ["config.cache", "toc.empty_glob", "ref.python"]
"""A class in the gallery's configuration; a folder of pages without a page; two classes of one name in annotations."""
suppress_warnings += ["myst.xref_missing", "myst.iref_ambiguous", "toc", "ref", "image"] if ONE else []
intersphinx_mapping = known(HERE / "inventories") if ALL else {}
intersphinx_disabled_reftypes = ["std:*"]  # no word of a page may lead elsewhere by chance

html_theme = "furo"
html_title = f"structpe {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["filtered.js", "reach.js"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_favicon = "_static/icon.svg"
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = "$ "

myst_enable_extensions = ["colon_fence", "substitution"]
myst_heading_anchors = 3
GOLDEN = json.loads((HERE.parent / "tests" / "golden" / "INDEX.json").read_text(encoding="utf-8"))
myst_substitutions = {
    "models": len(MODELS),
    "encodings": len(ENCODINGS),
    "golden": len({model for entry in GOLDEN.values() for model in entry.get("models", ())}),
    "api": "[the API](api/index.rst), " if ALL else "",
}
"""Numbers that pages name, counted here so that a new model does not make them wrong."""

napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_inherit_docstrings = False  # PyTorch and Lightning document their methods on their own pages
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}

REGISTERED = {*MODELS.values(), *ENCODINGS.values()}

drawn: WeakSet[Any] = WeakSet()


def scraped(_block: Any, variables: dict[str, Any], settings: dict[str, Any]) -> str:
    """The figures that an example has made since the last block; their labels are their alternative texts."""
    from matplotlib.figure import Figure
    from sphinx_gallery.scrapers import figure_rst

    shown = ""
    for name, value in variables["example_globals"].items():
        if isinstance(value, Figure) and value not in drawn:
            drawn.add(value)
            path = next(variables["image_path_iterator"])
            if not value.get_label():
                raise ValueError(f"{variables['src_file']}: say what is seen, in {name}.set_label(...)")
            value.savefig(path, dpi=120, bbox_inches="tight")
            shown += figure_rst([path], settings["src_dir"], fig_titles=str(value.get_label()))
    return shown


def styled(_settings: dict[str, Any], _file: str) -> None:
    """The look of the gallery's own plots; those of ``structpe.pictures`` have theirs."""
    import matplotlib

    from structpe.pictures.style import LINES

    matplotlib.rcParams.update({"font.size": 9, "axes.titlesize": 9.5, "axes.titlelocation": "left"})
    matplotlib.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
    matplotlib.rcParams["axes.prop_cycle"] = matplotlib.cycler(color=LINES)


sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("matplotlib", styled),
    "download_all_examples": False,
    "image_scrapers": (scraped,),
    "capture_repr": (),
    "show_memory": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
}


def write_api(_: Any) -> None:
    """The pages of the API; git ignores them."""
    folder = HERE / "api"
    folder.mkdir(exist_ok=True)
    pages = api.written(plain)
    for name, text in pages.items():
        write_changed(folder / f"{name}.rst", text)
    for file in folder.glob("*.rst"):
        if file.stem not in pages:
            file.unlink()


def to_catalogue(app: Any, _env: Any, node: Any, content: Any) -> Any:
    """A class of the registries that a docstring names leads to its page: the API has none of them."""
    name = node.get("reftarget", "").rpartition(".")[2]
    for registry, folder in ((MODELS, "catalogue/"), (ENCODINGS, "catalogue/encodings/")):
        for key, of in registry.items():
            if of.__name__ == name:
                return make_refnode(app.builder, node["refdoc"], f"{folder}{key}", "", content)
    return None


LITERAL = re.compile(r"``.*?``|`[^`]+`")
MARKUP = re.compile(r"\||(?<=\w)_(?!\w)")


def plain(line: str) -> str:
    """A line of a docstring with escaped markup outside of literals, so that W_.w is a formula and not a link."""
    out, last = "", 0
    for literal in LITERAL.finditer(line):
        out += escaped(line[last : literal.start()]) + literal[0]
        last = literal.end()
    return out + escaped(line[last:])


def escaped(text: str) -> str:
    """A text without literals: indices set as such, what is left of markup escaped; the name of an argument stays."""
    _, name, said = re.split(r"^(:\w+ [^:]*:)?", text, maxsplit=1) if text.startswith(":") else ("", "", text)
    return (name or "") + MARKUP.sub(r"\\\g<0>", indexed(said))


def table(rows: list[str]) -> list[str]:
    """A table of Markdown as a ``list-table``."""
    cells = [[cell.strip() for cell in row.strip().strip("|").split(" | ")] for row in rows]
    heads = [".. list-table::", "   :header-rows: 1", ""]
    body = [f"   {'* -' if place == 0 else '  -'} {cell}" for row in cells for place, cell in enumerate(row)]
    return [*heads, *body, ""]


def process(_app: Any, what: str, _name: str, obj: Any, _options: Any, lines: list[str]) -> None:
    """Convert tables in Markdown and plain formulas in docstrings, which are written to be read in an editor."""
    out: list[str] = []
    rows: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("| "):
            rows.append(line)
            continue
        if line.startswith("|--"):
            continue
        if rows:
            out += table(rows)
            rows = []
        out.append(line if line.startswith("    ") else plain(line))
    if what == "class" and obj in REGISTERED:  # its title is the first line, its formula the paragraph after it
        lines[:] = [*out[:2], *formula(lines[2]), *set_blocks(out[3:])]
    else:
        lines[:] = out


def set_blocks(lines: list[str]) -> list[str]:
    """Lines with each literal block as formulas, unless it is a program."""
    out: list[str] = []
    place = 0
    while place < len(lines):
        end = place + 1
        while end < len(lines) and (not lines[end] or lines[end].startswith("    ")):
            end += 1
        block = [line for line in lines[place + 1 : end] if line]
        if lines[place].endswith("::") and block and '["' not in "".join(block):
            out += [
                lines[place][:-1],
                "",
                ".. raw:: html",
                "",
                f"   {display_lines(block)}",
                "",
            ]
        else:
            out += lines[place:end]
        place = end
    return out


def join_bases(_app: Any, what: str, _name: str, obj: Any, _options: Any, lines: list[str]) -> None:
    """What a family says once, in its base, stands on the page of each model and encoding."""
    if what == "class" and obj in REGISTERED:
        lines[:] = [*inherited(obj), ""]


def signed(_app: Any, what: str, _name: str, obj: Any, _options: Any, *shown: str | None) -> tuple[str | None, ...]:
    """The arguments of position models: those of their constructor, not of what keeps them."""
    if what != "class" or not issubclass(obj, PositionModel):
        return shown
    own = list(inspect.signature(obj.__init__).parameters.values())[1:]
    return f"({', '.join(str(each.replace(annotation=inspect.Parameter.empty)) for each in own)})", None


ROLE = re.compile(r":\w+:`~?[^`]*?(\w+)`")


def formula(line: str) -> list[str]:
    """The formula of a position model or an encoding."""
    without_links = ROLE.sub(r"\1", line)
    return [".. raw:: html", "", f'   <p class="formula">{display(without_links)}</p>']


OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)]+)\)")


def read(app: Any, docname: str, source: list[str]) -> None:
    """Replace a link to a file of the repository that is not a page by its name."""
    here = (HERE / docname).parent

    def said(link: re.Match[str]) -> str:
        target = (here / link[2].partition("#")[0]).resolve()
        return link[0] if target.is_relative_to(HERE) else f"{link[1]} (`{target.relative_to(HERE.parent)}`)"

    text = OUTSIDE.sub(said, source[0])
    if docname == "decisions/README":
        text = "## ".join(with_tree(part) for part in text.split("## "))
    source[0] = text if ALL else MADE_BY_ALL.sub("", text)


MADE_BY_ALL = re.compile(r"^.*<(?:api|auto_gallery)/index>\n", re.MULTILINE)
"""The lines of the sidebar for pages that are not there when the Markdown alone is built."""
PAGE = re.compile(r"^\| \[[^\]]+\]\(([\w/-]+)\.md\)", re.MULTILINE)


def with_tree(section: str) -> str:
    """A section whose table lists pages, with the same list for the sidebar."""
    pages = "\n".join(PAGE.findall(section))
    caption = section.partition("\n")[0].lstrip("# ")
    return f"{section}\n:::{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n:::\n\n" if pages else section


def write_catalogue(_: Any) -> None:
    """Write the page of all position models, and one for each. Git ignores them: a new model must not change a page."""
    with redirect_stdout(io.StringIO()) as page:
        runpy.run_path(str(HERE / "site" / "catalogue_page.py"), run_name="__main__")
    write_changed(HERE / "catalogue.md", page.getvalue())
    importlib.import_module("model_pages").main()


def write_changed(file: Path, text: str) -> None:
    """Write a page unless it is the same already: Sphinx builds an unchanged page only once."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def own_document(_app: Any, doctree: Any) -> None:
    """Tie each node to the page that it is in.

    Those of an ``eval-rst`` block are tied to a document of their own, whose settings hold the whole environment. It
    would be written and read again with each page.
    """
    for node in doctree.findall():
        node.document = doctree


def setup(app: Any) -> None:
    """Called by Sphinx."""
    gc.set_threshold(100_000, 50, 100)  # pages are trees of small objects: a quarter of the time was spent on garbage
    if not ONE:
        app.connect("builder-inited", write_catalogue, priority=100)
    if API:
        app.connect("builder-inited", write_api, priority=100)
    app.connect("missing-reference", to_catalogue)
    app.connect("autodoc-process-docstring", join_bases, priority=100)  # before the sections are read
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", signed)
    app.connect("source-read", read)
    app.connect("doctree-read", own_document)
    app.connect("html-page-context", partial(menu, {}), priority=100)  # before the theme asks for it
    app.connect("build-finished", write_llms)
