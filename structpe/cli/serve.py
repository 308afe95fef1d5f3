"""``structpe serve``: a trained run as a server of JSON."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, Namespace
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from structpe.cli._inputs import check_device
from structpe.cli._listening import HERE, address_of, listening
from structpe.cli.base import Command, UsageError, path_of
from structpe.errors import needing

if TYPE_CHECKING:
    import uvicorn

    from structpe.serve.web import Limits, WebApp

__all__ = ["ServeCommand", "is_local", "server_of", "token_of"]

TOKEN = "STRUCTPE_TOKEN"
"""The variable of the environment with the token."""
SECRET = re.compile(r"[!-~]{16,}")
LIMITS = {
    "body": (int, "BYTES", "bytes of a request"),
    "items": (int, "N", "items of a request"),
    "nodes": (int, "N", "nodes and units of a structure"),
    "queue": (int, "N", "items that wait; a request that finds more is answered 503"),
    "seconds": (float, "S", "from a request to its answer, else 504"),
    "batch": (int, "N", "items that the model reads at once"),
    "wait": (float, "S", "how long a request waits for others to share its batch"),
}
"""The fields of ``Limits``, each an option: its type, its metavar, its help."""


class ServeCommand(Command, name="serve"):
    """Serve a trained run: JSON in, texts, predictions or parses out.

    Clients send items to /generate, /predict or /parse, as the run does; / is a page to try it, /openapi.json describes
    it, /health says whether requests are taken, /metrics has counts and times for Prometheus. Items of several requests
    are one batch.

    It cannot be reached from other machines unless you give --host. With another address clients need a token of 16
    characters or more, in the variable STRUCTPE_TOKEN or in the file of --token-file; connections are not encrypted, so
    put a proxy with TLS before it. SIGTERM or Ctrl-C ends it after it has answered what it has taken.
    """

    example = (
        "structpe serve runs/amr\n"
        "structpe serve runs/solubility --port 9000 --batch 64\n"
        "structpe serve runs/amr --host 0.0.0.0 --token-file token.txt"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", type=path_of, help="folder of a trained run or parser")
        parser.add_argument("--port", metavar="N", type=int, default=8000, help="default 8000; 0 is any free one")
        parser.add_argument("--host", metavar="ADDRESS", default=HERE, help=f"of this machine (default {HERE})")
        parser.add_argument("--token-file", metavar="FILE", type=path_of, help=f"the token; by default of ${TOKEN}")
        parser.add_argument("--parser", metavar="NAME", dest="spacy", help="pipeline of spaCy for the form 'sentence'")
        parser.add_argument("--device", choices=("cpu", "cuda"), help="by default a GPU, if there is one")
        limits = parser.add_argument_group("limits")
        for name, (kind, metavar, doc) in LIMITS.items():
            limits.add_argument(f"--{name}", metavar=metavar, type=kind, help=doc)

    def run(self, given: Namespace) -> None:
        if not 0 <= given.port <= 65535:
            raise UsageError(f"--port is {given.port}; give one of 0..65535")
        token = token_of(given.token_file)
        if not token and not is_local(given.host):
            raise UsageError(
                f"--host {given.host} can be reached from other machines, and there is no token; put one of 16 "
                f"characters or more into {TOKEN} or a file, for --token-file"
            )
        for package in ("fastapi", "uvicorn"):
            with needing(package, "serve"):
                import_module(package)
        check_device(given)
        with listening(given.host, given.port) as listens:
            site = _site(given, token)
            server = server_of(site)
            print(f"The server is at {address_of(given.host, listens)}\nCtrl-C ends it.", flush=True)
            try:
                server.run(sockets=[listens])
            except (KeyboardInterrupt, SystemExit):  # the signal, which uvicorn has heard and sends once more
                if server.force_exit or not server.should_exit:
                    raise
            finally:
                site.batches.close()
        print("The server has ended; what it had taken is answered.")


def _site(given: Namespace, token: str) -> WebApp:
    from structpe.serve.served import served
    from structpe.serve.web import Limits, WebApp

    asked = {name: value for name in LIMITS if (value := getattr(given, name)) is not None}
    limits: Limits = Limits(**asked)
    run = served(given.run, given.device, limits.nodes, given.spacy)
    return WebApp(run, limits, token, (HERE, "localhost") if given.host in (HERE, "localhost") else ("*",))


def is_local(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def token_of(file: Path | None) -> str:
    """The token of a file, or of the environment; empty if there is none.

    Raises:
        UsageError: it is not 16 or more characters of ASCII without blanks.
        OSError: the file cannot be read.
    """
    token = os.environ.get(TOKEN, "") if file is None else file.read_text(encoding="utf-8", errors="replace").strip()
    if (token or file is not None) and not SECRET.fullmatch(token):
        where = TOKEN if file is None else file
        raise UsageError(
            f"the token of {where} has {len(token)} characters; give 16 or more letters, digits or signs without "
            f"blanks, such as those of: openssl rand -hex 32"
        )
    return token


def server_of(site: WebApp) -> uvicorn.Server:
    """The server of an application."""
    from uvicorn import Config, Server

    ends = int(site.limits.seconds) + 5  # of a stop, in which requests that have begun are answered
    config = Config(
        site.app, log_level="warning", http="h11", ws="none", lifespan="off", limit_concurrency=512,
        timeout_keep_alive=5, timeout_graceful_shutdown=ends, server_header=False,
    )  # fmt: skip
    return Server(config)
