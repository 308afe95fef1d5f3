"""The app, a web page on this machine: structures, encodings, two position models side by side, and trained runs.

All choices are in the address, so an address brings the same view back. The form also works without a script: it is
posted, and the answer leads to the address of the view. After wrong input the page has a message and the last view.
Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from structpe.encodings.base import ENCODINGS
from structpe.errors import ConfigError, StructPEError
from structpe.formats import READERS
from structpe.pictures.given import FORMS, LETTERS
from structpe.pictures.scene import FIRST, FROM_FILE, FROM_RUN, QUANTITIES, Choices, Scene, scene
from structpe.positions import MODELS

__all__ = ["site"]

FOLDER = Path(__file__).parent
BODY = 1 << 18
"""Largest number of bytes of a posted form: two views with texts of the most letters, percent-encoded."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src data:; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
EXAMPLES = {
    "a sentence and its parse": FIRST,
    "a meaning graph": Choices("penman", FORMS["penman"].sample, first="undirected-distance",
                               second="label-path", a="graformer", b="rwse"),
    "facts": Choices("triples", FORMS["triples"].sample, first="undirected-distance", second="label-path",
                     a="graformer", b="rwse"),
    "a molecule": Choices("smiles", FORMS["smiles"].sample, first="{name: random-walk, steps: 8}",
                          second="undirected-distance", a="graphormer", b="rwse"),
}  # fmt: skip
"""Views to begin with, by their titles."""

_DRAWING = threading.Lock()
"""Matplotlib's settings and PyTorch's seed are of the whole process."""


def site(start: Choices = FIRST, hosts: tuple[str, ...] = ("127.0.0.1", "localhost")) -> Starlette:
    """The app.

    Args:
        start: the first view.
        hosts: names by which browsers may call it; others are refused, so no page of another site can read answers.
    """
    page = Environment(loader=FileSystemLoader(FOLDER), autoescape=True).get_template("app.html")

    held: dict[Choices, Scene] = {}  # the view of the last form, until its address is asked for

    async def get(request: Request) -> Response:
        if _foreign(request):
            return PlainTextResponse("another site asks for this page; open its address yourself", 403)
        return await run_in_threadpool(_shown, page, start, dict(request.query_params), held)

    async def post(request: Request) -> Response:
        body, bare = bytearray(), "x-message-only" in request.headers
        async for part in request.stream():
            body += part[: BODY + 1 - len(body)]  # all is read, as a browser wants to send all before it listens
        if len(body) > BODY:
            wrong = ConfigError(f"the input is larger than {BODY:,} bytes; paste up to {LETTERS:,} letters")
            return _page(page, start, None, start, wrong)
        given = dict(parse_qsl(body.decode("utf-8", errors="replace"), keep_blank_values=True))
        return await run_in_threadpool(_posted, page, start, given, held, bare)

    routes = [Route("/", get), Route("/", post, methods=["POST"])]
    routes += [Route(f"/{name}", _file(name)) for name in ("app.css", "app.js")]
    return Starlette(routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))])


def _foreign(request: Request) -> bool:
    """Whether a page of another site asks for it, other than by a link that a person follows."""
    site, how = (request.headers.get(f"sec-fetch-{name}", "") for name in ("site", "dest"))
    return site in ("cross-site", "same-site") and how != "document"


def _file(name: str) -> Any:
    async def answer(request: Request) -> Response:
        del request
        return FileResponse(FOLDER / name, headers=HEADERS)

    return answer


def _drawn(choices: Choices) -> Scene:
    with _DRAWING:
        return scene(choices)


def _shown(page: Any, start: Choices, given: Mapping[str, str], held: dict[Choices, Scene]) -> Response:
    """The view of an address; the first view without one."""
    choices = start
    try:
        choices = Choices.of(given) if given else start
        return _page(page, choices, held.pop(choices, None) or _drawn(choices), choices)
    except StructPEError as error:
        return _page(page, choices, None, start, error)


def _posted(page: Any, start: Choices, given: dict[str, str], held: dict[Choices, Scene], bare: bool) -> Response:
    """Lead to the address of the view; after wrong input, say what is wrong and show the last view again.

    Args:
        page, start: as in :func:`site`.
        given: the fields of the form, and the address of the last view.
        held: where the view is put.
        bare: whether the script asks, which keeps the last view itself.
    """
    was = dict(parse_qsl(given.pop("was", ""), keep_blank_values=True))
    choices = last = start
    try:
        choices = Choices.of(given)
        choices = Choices.of(dict(parse_qsl(choices.query, keep_blank_values=True)))
        held.clear()
        held[choices] = _drawn(choices)
    except StructPEError as error:
        try:
            last = Choices.of(was) if was else start
            return _page(page, choices, None if bare else _drawn(last), last, error)
        except StructPEError:  # the last view was of a file or a run that has changed since
            return _page(page, choices, None, start, error)
    return RedirectResponse(f"/?{choices.query}", 303, HEADERS)


def _page(
    page: Any, choices: Choices, shown: Scene | None, last: Choices, error: StructPEError | None = None
) -> HTMLResponse:
    """The whole page.

    Args:
        page: its template.
        choices: the values of the form.
        shown: the view; None if there is none.
        last: the choices of the view.
        error: what is wrong.
    """
    text = page.render(
        choices=choices,
        scene=shown,
        was=last.query,
        error="" if error is None else str(error),
        forms={name: form.label for name, form in FORMS.items()}
        | {FROM_FILE: "an item of a file", FROM_RUN: "an item of the data of a run"},
        pasted=FORMS,
        quantities={"both": "bias (or scores) and attention"} | {name: name for name in QUANTITIES[1:]},
        readers={"": "by the suffix"} | {name: name for name in sorted(READERS)},
        samples={n: {"sample": each.sample, "heads": each.heads, "help": each.help} for n, each in FORMS.items()},
        encodings=sorted(ENCODINGS),
        models=sorted(MODELS),
        letters=LETTERS,
        examples={title: f"/?{each.query}" for title, each in EXAMPLES.items()},
    )
    return HTMLResponse(text, 200 if error is None else 422, HEADERS)
