"""Shared by the commands that generate texts with a trained model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from structpe.cli._paths import path_of
from structpe.cli._reading import BY_RUN, add_reading, wanted_by
from structpe.cli.base import UsageError

if TYPE_CHECKING:
    from structpe.formats import Item
    from structpe.nn.search import SearchConfig

__all__ = ["SEARCH", "add_arguments", "requested"]

SEARCH = ("beam", "length_penalty", "longest")
"""The fields of ``SearchConfig``, which are options."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare run, file, options of reading, and each field of the search."""
    parser.add_argument("run", metavar="RUN", type=path_of, help="folder of a trained model")
    parser.add_argument("file", metavar="FILE", type=path_of, help="file or folder with structures")
    add_reading(parser, BY_RUN, on_error="as in training")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="by default a GPU, if there is one")
    search = parser.add_argument_group("search", "by default as the run was configured")
    search.add_argument("--beam", metavar="N", type=int, help="texts kept at each step; 1 is greedy")
    search.add_argument("--length-penalty", metavar="A", type=float, help="0 prefers short texts, larger longer ones")
    search.add_argument("--longest", metavar="N", type=int, help="largest length of a text, in units")


def requested(given: Namespace) -> tuple[list[Item], SearchConfig]:
    """The items and the search options: those of the run, unless arguments override them."""
    import torch

    from structpe.nn.search import SearchConfig
    from structpe.tasks.runs._text import text_run

    if given.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("PyTorch sees no GPU here; leave --device out, or give --device cpu")
    run = text_run(given.run)
    asked = {name: each for name in SEARCH if (each := getattr(given, name)) is not None}
    if asked.get("beam", run.config.search.beam) == 1:
        if "length_penalty" in asked:
            raise UsageError(
                "--length-penalty has no effect on greedy search, which keeps one text; give --beam 2 or more"
            )
        asked["length_penalty"] = SearchConfig.length_penalty  # that of the run has no effect either
    return list(wanted_by(run, given.file, given).read().items), replace(run.config.search, **asked)
