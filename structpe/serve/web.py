"""The web application of a served run: one address for items, and ``/health``, ``/metrics``, a page to try it.

The body of a request is read and checked here rather than by FastAPI, which would hold all of it first, and whose
errors would not say what to do. Nothing of the page is loaded from elsewhere.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from structpe import __version__
from structpe.errors import ConfigError, ReadError, StructPEError, bounded, listed
from structpe.serve.batches import QueueFull, RequestQueue, WrongItem
from structpe.serve.metrics import CONTENT, ServerMetrics
from structpe.serve.served import Served

__all__ = ["Limits", "WebApp"]

PAGE = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")


def _hashes(tag: str) -> str:
    """What a browser may run, or may style the page by: exactly the parts of the page."""
    parts = re.findall(rf"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" for part in parts)


HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src {_hashes('style')}; script-src {_hashes('script')}; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Limits:
    """Limits of a server.

    Args:
        body: bytes of a request.
        items: items of a request.
        nodes: nodes and units of a structure.
        queue: items that wait for a batch.
        seconds: from the headers of a request to its answer.
        batch: items of a batch at most.
        wait: seconds in which others may join the batch of a request.

    Raises:
        ConfigError: a limit is not positive.
    """

    body: int = 1 << 20
    items: int = 64
    nodes: int = 512
    queue: int = 256
    seconds: float = 30.0
    batch: int = 32
    wait: float = 0.005

    def __post_init__(self) -> None:
        for name in ("body", "items", "nodes", "queue", "seconds", "batch"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"--{name} is {getattr(self, name)}; give a number larger than 0")
        if not 0 <= self.wait <= 1:
            raise ConfigError(f"--wait is {self.wait}; give seconds from 0 to 1")


class _Refused(Exception):
    """A request with an error; its answer."""

    def __init__(self, status: int, error: str, item: int | None = None, **headers: str) -> None:
        super().__init__(error)
        self.status, self.item = status, item
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class WebApp:
    """The application, with the queue and its thread.

    Args:
        served: the run.
        limits: its limits.
        token: what ``Authorization: Bearer`` must have; empty for none.
        hosts: names by which clients may call the server: a page of another site cannot read answers by a name of its
            own.

    Attributes:
        app: the application.
        batches: the queue.
        metrics: what it has done.
    """

    def __init__(
        self, served: Served, limits: Limits = Limits(), token: str = "", hosts: tuple[str, ...] = ("*",)
    ) -> None:
        self.served, self.limits, self.token = served, limits, token
        self.metrics = ServerMetrics()
        self.examples = served.examples()
        self.batches = RequestQueue(served.work, limits.batch, limits.wait, limits.queue, self.metrics.batch)
        self.app = FastAPI(
            title="structpe", version=__version__, docs_url=None, redoc_url=None, description=self._description()
        )
        self.app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
        add = self.app.add_api_route
        secret = [Depends(HTTPBearer(scheme_name="bearer", auto_error=False))] if token else []  # for the description
        add(f"/{served.verb}", self._post, methods=["POST"], summary=type(served).__doc__, openapi_extra=self._schema(),
            response_class=JSONResponse, responses=_responses(), dependencies=secret)  # fmt: skip
        add("/health", self._health, summary="Whether requests are taken.", response_class=JSONResponse)
        add("/metrics", self._metrics, summary="Counts and times, for Prometheus.", response_class=PlainTextResponse)
        add("/", self._page, include_in_schema=False)

    def _description(self) -> str:
        of = self.limits
        return (
            f"A request has a list of 1 to {of.items} items, in {of.body:,} bytes of JSON. A structure has up to "
            f"{of.nodes} nodes and units. The answer comes within {of.seconds:g} s."
        )

    def _schema(self) -> dict[str, Any]:
        item = {"type": "object", "description": "a structure in one of the forms of the examples"}
        many = {"type": "array", "items": item, "minItems": 1, "maxItems": self.limits.items}
        content: dict[str, Any] = {
            "schema": {"type": "object", "properties": {"items": many}, "required": ["items"]},
            "examples": {form: {"summary": form, "value": {"items": [each]}} for form, each in self.examples.items()},
        }
        return {"requestBody": {"required": True, "content": {"application/json": content}}}

    async def _page(self) -> Response:
        given = json.dumps({"verb": self.served.verb, "examples": self.examples, "token": bool(self.token)})
        return HTMLResponse(PAGE.replace("{given}", given.replace("<", "\\u003c")), headers=HEADERS)

    async def _health(self) -> Response:
        ready = self.batches.ready
        plain = {"status": "ok" if ready else "ending", "does": self.served.verb, "version": __version__}
        return JSONResponse(plain, 200 if ready else 503, HEADERS)

    async def _metrics(self, request: Request) -> Response:
        try:
            self._check_token(request)
        except _Refused as error:
            return _answer(error)
        return Response(self.metrics.text(self.batches.waiting), headers={**HEADERS, "Content-Type": CONTENT})

    async def _post(self, request: Request) -> Response:
        begun = perf_counter()
        try:
            response = await self._answered(request)
        except _Refused as error:
            response = _answer(error)
        except ClientDisconnect:
            response = Response(status_code=499)  # nobody reads it; it is counted
        except Exception:
            traceback.print_exc(file=sys.stderr)
            response = _answer(_Refused(500, "the server has failed, and its log says why; send other items"))
        self.metrics.request(response.status_code, perf_counter() - begun)
        return response

    async def _answered(self, request: Request) -> Response:
        self._check_token(request)
        self._check_head(request)
        reading = True
        try:
            async with asyncio.timeout(self.limits.seconds):
                body = await self._body(request)
                reading = False
                items = await run_in_threadpool(self._items, body)
                results = await asyncio.wrap_future(self.batches.submit(items))
        except TimeoutError:
            if reading:
                raise _late(408, f"the body has not come within {self.limits.seconds:g} s; send it faster") from None
            raise _Refused(
                504, f"there is no answer within {self.limits.seconds:g} s; send fewer or smaller items, or ask later"
            ) from None
        except QueueFull as error:
            raise _Refused(503, str(error), Retry_After="1") from None
        except WrongItem as error:
            raise _Refused(422, str(error), error.number) from None
        except StructPEError as error:
            raise _Refused(422, str(error)) from None
        return Response(msgspec.json.encode({"results": results}), media_type="application/json", headers=HEADERS)

    def _check_token(self, request: Request) -> None:
        if not self.token:
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self.token.encode())
        if kind.lower() != "bearer" or not same:
            why = "the token is missing or wrong; send it as 'Authorization: Bearer TOKEN'"
            raise _Refused(401, why, WWW_Authenticate="Bearer")

    def _check_head(self, request: Request) -> None:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # which a page of another site cannot send unasked
            raise _late(415, f"the content type is {kind[:80] or 'missing'}; send application/json")
        if (length := request.headers.get("content-length", "")).isdigit() and int(length[:20]) > self.limits.body:
            raise self._too_long()

    def _too_long(self) -> _Refused:
        return _late(413, f"the body is larger than {self.limits.body:,} bytes; send fewer items in a request")

    async def _body(self, request: Request) -> bytes:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > self.limits.body:
                raise self._too_long()
        return bytes(body)

    def _items(self, body: bytes) -> list[Any]:
        """What the run works on.

        Raises:
            _Refused: it is not JSON.
            WrongItem: an item is wrong.
            ReadError: there is no item, or too many.
        """
        try:
            given = msgspec.json.decode(body)  # which takes no NaN, and no number beyond the largest
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise _Refused(400, f"the body is not JSON in UTF-8 ({bounded(str(error), 200)}); correct it") from None
        except RecursionError:
            raise _Refused(400, "the body has too many lists and objects within one another; correct it") from None
        if not isinstance(given, dict) or set(given) != {"items"} or not isinstance(given["items"], list):
            has = listed(given) if isinstance(given, dict) else type(given).__name__
            raise ReadError(f"the body has: {has}; give {{'items': [...]}}, a list of items, and nothing else")
        if not 1 <= len(given["items"]) <= self.limits.items:
            raise ReadError(f"the request has {len(given['items'])} items; give 1 to {self.limits.items}")
        return [self._item(each, number) for number, each in enumerate(given["items"], 1)]

    def _item(self, given: Any, number: int) -> Any:
        try:
            return self.served.item(given, number)
        except StructPEError as error:
            raise WrongItem(number, error) from None
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            # Of Python or a library: a value has a type that no structure has, such as a list as an id.
            why = f"{type(error).__name__}: {bounded(str(error), 200)}"
            raise WrongItem(number, ReadError(f"it cannot be read ({why}); see the examples at /")) from None


def _late(status: int, error: str) -> _Refused:
    """A refusal before the whole body is read: the connection cannot be used again."""
    return _Refused(status, error, Connection="close")


def _answer(error: _Refused) -> Response:
    plain = {"error": str(error)} | ({} if error.item is None else {"item": error.item})
    body = msgspec.json.encode({key: _clean(value) for key, value in plain.items()})
    return Response(body, error.status, {**HEADERS, **error.headers}, "application/json")


def _clean(value: Any) -> Any:
    """A text that is valid UTF-8."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _responses() -> dict[int | str, dict[str, Any]]:
    """The answers, for the page of the interface."""
    said = {
        200: "A result for each item, in their order.",
        400: "The body is not JSON.",
        401: "The token is missing or wrong.",
        408: "The body does not come.",
        413: "The body is too large.",
        415: "The body is said not to be JSON.",
        422: "An item is wrong: 'error' says what to do, 'item' is its number from 1.",
        503: "Too many items wait; ask again after the seconds of Retry-After.",
        504: "It takes too long.",
    }
    return {status: {"description": text} for status, text in said.items()}
