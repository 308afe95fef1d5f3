"""Opens pages of the site in a real browser, on a desk and on a phone, light and dark, and says what is wrong.

    python docs/site/look.py build/docs                     # exits with 1 if anything is wrong
    python docs/site/look.py build/docs --pictures FOLDER   # a picture of each page, too

Checked are: no page is wider than the screen; no letters are too small; axe finds nothing serious; the keyboard reaches
the groups of the sidebar and opens them; a search puts the page that people mean first. Without Chromium or its
libraries nothing is checked, and the reason is printed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["MEANT", "PAGES", "look", "missing"]

PAGES = (
    "index",
    "get_started",
    "install",
    "course/4_graphs",
    "howto/choose",
    "adapters",
    "catalogue",
    "catalogue/t5",
    "catalogue/encodings/laplacian",
    "cheatsheet",
    "comparison",
    "faq",
    "api/index",
    "api/structpe",
    "auto_gallery/index",
    "search",
)
"""A spread of pages; those of the API and the gallery are left out where they were not built."""
WIDTHS = {"desk": (1440, 900), "phone": (390, 844)}
SMALLEST = 10.5
"""Pixels of the smallest letters."""
MEANT = {
    "rope": "catalogue/rotary",
    "pe": "idea",
    "bias": "course/5_one_equation",
    "gps": "coming_from/graphgps",
    "lappe": "catalogue/encodings/laplacian",
    "install": "install",
    "triton": "howto/",
}
"""What people search for, and how the address of the first page that is found begins."""
SMALL = """limit => [...document.querySelectorAll("article *")].filter(each =>
  [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()) && each.getClientRects().length
  && !each.closest("math, sub, sup, svg, .headerlink, .sd-hide-link-text")
  && parseFloat(getComputedStyle(each).fontSize) < limit
).slice(0, 3).map(each => `${each.tagName.toLowerCase()}.${each.className}: ${each.textContent.trim().slice(0, 40)}`)"""
WIDE = """() => document.documentElement.scrollWidth - document.documentElement.clientWidth"""
FRAMES = """() => [...document.querySelectorAll("article svg[role=img]")].flatMap(
  svg => [...svg.querySelectorAll("text")]
  .filter(each => each.getClientRects().length
    && parseFloat(getComputedStyle(each).fontSize) * svg.getBoundingClientRect().width
       / (svg.viewBox.baseVal.width || svg.getBoundingClientRect().width) < 8)
  .map(each => each.textContent)).slice(0, 3)"""


def missing() -> str:
    """Why there is no browser; nothing if there is one."""
    if browser() is None:
        return "there is no Chromium"
    absent = [name for name in ("playwright", "axe_playwright_python") if find_spec(name) is None]
    return f"{' and '.join(absent)} is not installed" if absent else ""


def browser() -> str | None:
    """The program."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A folder at an address of this machine."""
    handler = partial(Quiet, directory=str(folder))
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


class Server(ThreadingHTTPServer):
    """A server to which a browser may close a connection before it has all: a page that is left loads no more."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over what the browser does not want; any other error is printed."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Quiet(SimpleHTTPRequestHandler):
    """A server that prints nothing."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def look(folder: Path, pages: tuple[str, ...] = PAGES, pictures: Path | None = None) -> list[str]:
    """What is wrong with the pages of a built site, a line each."""
    from playwright.sync_api import sync_playwright

    found = []
    with served(folder) as address, sync_playwright() as play:
        program = play.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        for size, (width, height) in WIDTHS.items():
            for scheme in ("light", "dark"):
                context = program.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
                for name in (name for name in pages if (folder / f"{name}.html").is_file()):
                    page = context.new_page()
                    page.goto(f"{address}/{name}.html")
                    found += [f"{name} ({size}, {scheme}): {each}" for each in wrong(page, size)]
                    if pictures:
                        page.screenshot(path=pictures / f"{name.replace('/', '-')}-{size}-{scheme}.png", full_page=True)
                    page.close()
                context.close()
        found += keyboard(program, address)
        found += searches(program, address)
        program.close()
    return found


def wrong(page: Any, size: str) -> Iterator[str]:
    """What is wrong with an open page."""
    from axe_playwright_python.sync_playwright import Axe

    wide = page.evaluate(WIDE)
    if wide > 0:
        yield f"{wide} pixels wider than the screen"
    for text in page.evaluate(SMALL, SMALLEST):
        yield f"small letters in {text!r}"
    if size == "phone":
        for text in page.evaluate(FRAMES):
            yield f"small letters in a picture: {text!r}"
    for each in Axe().run(page).response["violations"]:
        if each["impact"] in ("serious", "critical"):
            yield f"axe, {each['impact']}: {each['help']}: {each['nodes'][0]['html'][:120]}"


def keyboard(program: Any, address: str) -> Iterator[str]:
    """Whether the groups of the sidebar open by the keyboard alone."""
    page = program.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{address}/index.html")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Course":
            break
    else:
        yield "the keyboard does not reach the group 'Course' of the sidebar"
    opened = 'document.activeElement.closest("details")?.open'
    before = page.evaluate(opened)
    page.keyboard.press("Enter")
    if page.evaluate(opened) == before:
        yield "Enter does not open a group of the sidebar"
    page.close()


def searches(program: Any, address: str) -> Iterator[str]:
    """Whether a search puts first what people mean."""
    page = program.new_page()
    for word, meant in MEANT.items():
        page.goto(f"{address}/search.html?q={word}")
        page.wait_for_selector("#search-results ul.search li a", timeout=20_000)
        first = page.locator("#search-results ul.search li a").first.get_attribute("href") or ""
        if not first.startswith(meant):
            yield f"search: {word!r} finds {first} first, and not {meant}"
    page.close()


def main() -> int:
    """Look, and print what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="of the built site")
    parser.add_argument("--pictures", type=Path, help="where to put a picture of each page")
    parser.add_argument("--pages", nargs="+", default=PAGES, help="which pages, without .html")
    given = parser.parse_args()
    if why := missing():
        print(f"not checked in a browser: {why}")
        return 0
    if given.pictures:
        given.pictures.mkdir(parents=True, exist_ok=True)
    found = look(given.folder, tuple(given.pages), given.pictures)
    print("\n".join(found) or "nothing is wrong")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
