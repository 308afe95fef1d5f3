"""BibTeX entries of position models."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import TypeAlias

from structpe.errors import PositionError
from structpe.positions import MODELS, PositionModel, Sum

__all__ = [
    "cite",
    "reference",
]


Citable: TypeAlias = PositionModel | type[PositionModel] | str
"""A model, its class, or its name."""


def cite(models: Citable | Iterable[Citable]) -> str:
    """The BibTeX entries of position models, each once, in order of first use; for a sum, those of its summands.

    Args:
        models: a model, its class or its name; or several of these.

    Raises:
        PositionError: a model or a reference does not exist.
    """
    several = [models] if isinstance(models, (PositionModel, type, str)) else models
    keys = dict.fromkeys(key for model in several for key in _keys(model))
    return "\n".join(reference(key) for key in keys)


def reference(key: str) -> str:
    """A BibTeX entry, ending in a line break.

    Raises:
        PositionError: the file ``structpe/references/<key>.bib`` does not exist.
    """
    entry = files("structpe") / "references" / f"{key}.bib"
    if not entry.is_file():
        raise PositionError(f"there is no reference {key!r}; add its BibTeX entry as structpe/references/{key}.bib")
    return entry.read_text(encoding="utf-8").strip() + "\n"


def _keys(model: Citable) -> list[str]:
    if isinstance(model, Sum):
        return [key for each in model.models if isinstance(each, PositionModel) for key in _keys(each)]
    return [(MODELS[model] if isinstance(model, str) else model).spec.cite]
