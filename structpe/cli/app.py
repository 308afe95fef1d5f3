"""``structpe app``: look at structures, position models and trained runs in a browser."""

from __future__ import annotations

import json
import webbrowser
from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import TYPE_CHECKING

from structpe.cli._inputs import add_reading, check_file, parse_options
from structpe.cli._listening import HERE, address_of, listening
from structpe.cli.base import Command, UsageError, path_of
from structpe.errors import needing

if TYPE_CHECKING:
    import uvicorn

    from structpe.pictures.scene import Choices

__all__ = ["AppCommand", "configured", "first_view"]


class AppCommand(Command, name="app"):
    """Look at structures, position models and trained runs in a browser.

    The app opens with a sentence, or with a file or the data of a trained run. Paste a sentence, CoNLL-U, PENMAN,
    triples or SMILES; choose encodings and two position models, which are shown side by side with what a shift and a
    renumbering of the nodes change; name a trained run to see what it writes or predicts. The address of a view brings
    it back.

    It runs on this machine, cannot be reached from others unless you give --host, and ends with Ctrl-C. With --host,
    everyone who reaches the address can read the files and runs that you can read.
    """

    example = (
        "structpe app\n"
        "structpe app datasets/trees_sample/sample.conllu\n"
        "structpe app runs/amr\n"
        "structpe app --port 2718 --no-browser\n"
        "structpe app trees.txt --reader ptb --option traces=drop"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", type=path_of, nargs="?", help="file or folder with structures, or of a trained run"
        )
        parser.add_argument("--port", metavar="N", type=int, help="port of the app; by default any free one")
        parser.add_argument("--host", metavar="ADDRESS", default=HERE, help=f"of this machine (default {HERE})")
        parser.add_argument("--no-browser", action="store_true", help="only print the address")
        add_reading(parser)

    def run(self, given: Namespace) -> None:
        if given.port is not None and not 1 <= given.port <= 65535:
            raise UsageError(f"--port is {given.port}; give one of 1..65535")
        start = first_view(given)
        for package in ("starlette", "uvicorn", "jinja2"):
            with needing(package, "app"):
                import_module(package)
        with listening(given.host, given.port or 0) as listens:
            address = address_of(given.host, listens) + (f"?{start.query}" if given.file else "")
            print(f"The app is at {address}\nCtrl-C ends it.", flush=True)
            if not given.no_browser:
                webbrowser.open(address)  # the socket listens already, so the browser waits for the first answer
            import_module("uvicorn").Server(configured(start, given.host)).run(sockets=[listens])


def first_view(given: Namespace) -> Choices:
    """The first view: of a trained run, of a file, or a sentence.

    Raises:
        UsageError: the file does not exist, or options of reading are given for a run or without a file.
        ReadError: the reader or an option does not exist.
    """
    if given.file is not None and not given.file.exists():
        raise UsageError(f"{given.file}: there is no such file or folder; check the path")
    if given.file is not None and (given.file / "config.yaml").is_file():
        if given.reader or given.options or given.on_error:
            raise UsageError(
                f"{given.file} holds a trained run, which reads its own data; leave options of reading out"
            )
        from structpe.pictures.scene import FROM_RUN, Choices

        return Choices(form=FROM_RUN, run=str(given.file))
    check_file(given)
    from structpe.pictures.scene import FROM_FILE, Choices

    if given.file is None:
        return Choices()
    options = json.dumps(parse_options(given.options)) if given.options else ""
    read = {"reader": given.reader or "", "options": options, "on_error": given.on_error or ""}
    return Choices(form=FROM_FILE, file=str(given.file), **read)


def configured(start: Choices, host: str) -> uvicorn.Config:
    """The settings of a server of the app."""
    from uvicorn import Config

    from structpe.pictures.app import BODY, site

    app = site(start) if host in (HERE, "localhost") else site(start, ("*",))
    # An address has the pasted text, which is longer than servers expect.
    return Config(app, log_level="warning", http="h11", h11_max_incomplete_event_size=BODY, lifespan="off")
