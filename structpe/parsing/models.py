"""Parsers: pipelines of spaCy, by the name of a package or the path of a folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from structpe.errors import StoreError, StructPEError, needing, reason_of
from structpe.plain.options import LAYERS
from structpe.system.files import SUMS, check

if TYPE_CHECKING:
    from spacy.language import Language

__all__ = ["DEFAULT", "ParsingError", "files_of", "load_parser", "not_finite"]

DEFAULT = "en_core_web_sm"
"""The default pipeline: English, 12 MB."""

PACKAGE = re.compile(r"[a-z]{2,3}_[a-z0-9]+(_[a-z0-9]+)+")
"""The pattern of names of packages for ``python -m spacy download``."""
DEPTH = re.compile(r"^\s*(?:depth|window_size|maxout_pieces)\s*=\s*([0-9]{1,18})", re.MULTILINE)


class ParsingError(StructPEError):
    """A parser is missing, does not fit, or cannot be trained."""


def load_parser(model: str | Path = DEFAULT) -> Language:
    """Load a pipeline with a parser.

    Args:
        model: name of an installed package, or a folder, such as one from ``structpe parse --train``.

    Raises:
        ParsingError: the package or folder does not exist, cannot be loaded, or has no parser.
        StoreError: files of a folder that structpe wrote have changed, or a weight is not finite.
        MissingExtra: spaCy is not installed.
    """
    with needing("spacy", "trees"):
        import spacy
    name = str(model)
    if not (Path(name).is_dir() or spacy.util.is_package(name)):
        raise ParsingError(_missing(name))
    if (folder := Path(name)).is_dir() and (folder / SUMS).exists():
        check(folder, files_of(folder), "its parts are not of one training: train the parser again")
    try:
        _check_depth(Path(name) / "config.cfg")
        nlp = spacy.load(name)
    except ParsingError as error:
        raise error.at(name) from None
    except Exception as error:  # spaCy and its dependencies raise many kinds of errors for a damaged folder
        raise ParsingError(
            f"the pipeline cannot be loaded ({type(error).__name__}: {reason_of(error)}); give a folder that spaCy or "
            "'structpe parse --train' wrote, of a version that fits, or train it again"
        ).at(name) from error
    if bad := not_finite(nlp):
        raise StoreError(f"the weights of {bad} are not finite; train the parser again").at(name)
    if "parser" not in nlp.pipe_names:
        has = ", ".join(nlp.pipe_names) or "nothing"
        raise ParsingError(f"the pipeline has no parser, it has: {has}; choose one that has").at(name)
    return nlp


def _check_depth(file: Path) -> None:
    """Check that a pipeline does not ask for too many layers: spaCy makes them before it looks at their weights.

    Raises:
        ParsingError: it does.
    """
    if not file.is_file():  # an installed package
        return
    for depth in map(int, DEPTH.findall(file.read_text(encoding="utf-8"))):
        if depth > LAYERS:
            raise ParsingError(f"its config.cfg asks for {depth} layers; {LAYERS} at most, restore the file")


def files_of(folder: Path) -> list[str]:
    """Names of all files in a folder and its subfolders, except that of checksums."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return [name for name in names if name != SUMS]


def not_finite(nlp: Language) -> str:
    """The first component of a pipeline with a weight that is not finite; empty without one."""
    for name, component in nlp.pipeline:
        model = getattr(component, "model", None)
        for node in () if model is None else model.walk():
            given = (node.get_param(each) for each in node.param_names if node.has_param(each))
            if not all(np.isfinite(np.asarray(each)).all() for each in given):
                return name
    return ""


def _missing(name: str) -> str:
    train = "train a parser: structpe parse --train FILE.conllu --dev FILE.conllu --out FOLDER"
    if PACKAGE.fullmatch(name):
        return f"the pipeline {name!r} is not installed: python -m spacy download {name}; or {train}"
    return f"there is no folder {name!r}, and no pipeline of that name is installed; check the path, or {train}"
