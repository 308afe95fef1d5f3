"""Tokenizers of Hugging Face in any form, converted to one of the ``tokenizers`` library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from structpe.errors import StructPEError, needing, reason_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["AnyTokenizer", "TokenizerError", "as_tokenizer", "unknown_token"]

AnyTokenizer: TypeAlias = Any
"""A ``tokenizers.Tokenizer``; a fast tokenizer of ``transformers``; a ``tokenizer.json``, or a folder that has one."""

FILE = "tokenizer.json"


class TokenizerError(StructPEError):
    """Something is not a fast tokenizer."""


def as_tokenizer(given: AnyTokenizer) -> Tokenizer:
    """The tokenizer, which has character offsets of its units.

    Raises:
        TokenizerError: it is a slow tokenizer without offsets, a path without a tokenizer, or something else.
        MissingExtra: the ``tokenizers`` library is not installed.
    """
    with needing("tokenizers", "text"):
        from tokenizers import Tokenizer
    if isinstance(given, Tokenizer):
        return given
    if isinstance(given, str | Path):
        return _load(Path(given))
    kind = type(given).__name__
    if not any(cls.__name__ == "PreTrainedTokenizerBase" for cls in type(given).__mro__):
        raise TokenizerError(
            f"a {kind} is not a known tokenizer; give a tokenizers.Tokenizer, a fast tokenizer of "
            f"transformers, or the path of a {FILE}"
        )
    if not given.is_fast:
        raise TokenizerError(
            f"{kind} is a slow tokenizer, which has no character offsets; load the fast one: "
            "AutoTokenizer.from_pretrained(..., use_fast=True)"
        )
    backend: Tokenizer = given.backend_tokenizer
    return backend


def unknown_token(tokenizer: Tokenizer) -> str | None:
    """The unknown token; Unigram has an id instead, which is only in its JSON."""
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("unk_id") is not None:
        return str(model["vocab"][model["unk_id"]][0])
    token: str | None = model.get("unk_token")
    return token


def _load(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise TokenizerError(f"there is no file {file.name!r}; give a {FILE}, or a folder that has one").at(path)
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # plain Exception is what the library raises
        raise TokenizerError(
            f"the file is not a tokenizer ({reason_of(error)}); give a file written by save() of the tokenizers "
            "library, or by save_pretrained() of a fast tokenizer of transformers"
        ).at(file) from None
