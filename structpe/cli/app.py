"""``structpe app``: look at structures in a browser."""

from __future__ import annotations

import json
import os
import runpy
import sys
from argparse import ArgumentParser, Namespace
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

from structpe.cli._inputs import add_reading, check_file, parse_options
from structpe.cli.base import Command, UsageError, path_of
from structpe.errors import MissingExtra, StructPEError

__all__ = ["AppCommand"]


class AppCommand(Command, name="app"):
    """Look at structures in a browser.

    The app loads a file, lets you choose encodings and a position model, and draws the pictures of 'structpe show'. It
    runs on this machine, cannot be reached from others, and ends with Ctrl-C.
    """

    example = (
        "structpe app datasets/trees_sample/sample.conllu\n"
        "structpe app --port 2718 --no-browser\n"
        "structpe app trees.txt --reader ptb --option traces=drop"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", type=path_of, nargs="?", help="file or folder with structures")
        parser.add_argument("--port", metavar="N", type=int, help="port of the app; by default any free one")
        parser.add_argument("--no-browser", action="store_true", help="only print the address")
        add_reading(parser)

    def run(self, given: Namespace) -> None:
        if find_spec("marimo") is None:
            raise MissingExtra("marimo", "app")
        if given.file is not None and not given.file.exists():
            raise UsageError(f"{given.file}: there is no such file or folder; check the path")
        if given.port is not None and not 1 <= given.port <= 65535:
            raise UsageError(f"--port is {given.port}; give one of 1..65535")
        check_file(given)
        process = get_context("spawn").Process(target=_marimo, args=(_words(given),))
        process.start()
        try:
            process.join()
        finally:
            process.terminate()
        if process.exitcode:
            raise StructPEError(f"marimo has ended with code {process.exitcode}; its output is above")


def _marimo(words: list[str]) -> None:
    """Run marimo with these arguments, in a separate process."""
    from structpe.system.workers import ends_with_its_parent

    ends_with_its_parent()
    os.environ["MARIMO_SKIP_UPDATE_CHECK"] = "1"
    sys.argv = ["marimo", *words]
    runpy.run_module("marimo", run_name="__main__", alter_sys=True)


def _words(given: Namespace) -> list[str]:
    """The arguments of ``marimo``."""
    notebook = Path(__file__).parents[1] / "pictures" / "app.py"
    words = ["run", str(notebook), "--host", "127.0.0.1"]
    words += [] if given.port is None else ["--port", str(given.port)]
    words += ["--headless"] if given.no_browser else []
    options = {"file": given.file, "reader": given.reader, "on_error": given.on_error}
    options["options"] = json.dumps(parse_options(given.options)) if given.options else None
    arguments = [word for key, value in options.items() if value is not None for word in (f"--{key}", str(value))]
    return [*words, "--", *arguments] if arguments else words
