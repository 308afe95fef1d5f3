"""conllu: sentences of the conllu library as dependency trees, and back. Files are read by the reader ``conllu``.

The name is the ``sent_id``. Units and features are lost; so is the order, as nodes are the words in their order.
"""

from __future__ import annotations

from typing import Any

from structpe.converters.base import ConversionError, add_converter
from structpe.errors import needing
from structpe.readers.base import Item
from structpe.readers.tree import tree
from structpe.structure import Structure
from structpe.writers.base import as_text

__all__ = ["from_conllu", "to_conllu"]


def from_conllu(sentence: Any) -> Structure:
    """The basic tree of a ``conllu.TokenList``, named by its ``sent_id``, without ranges and empty nodes.

    Raises:
        ConversionError: words are not numbered 1, 2, 3, ..., or one has no form or head.
        StructureError: the heads are not a tree.
    """
    if lacking := [place for place, token in enumerate(sentence, 1) if "id" not in token]:
        raise ConversionError(f"token {lacking[0]} has no id; ids count 1, 2, 3, ..., and each word has one")
    words = [token for token in sentence if isinstance(token["id"], int)]
    for place, word in enumerate(words, 1):
        if word["id"] != place or word.get("form") is None or word.get("head") is None:
            raise ConversionError(
                f"word {place} has id {word['id']}, form {word.get('form')!r} and head {word.get('head')!r}; ids count "
                "1, 2, 3, ..., and each word has a form and a head"
            )
    labels = [str(word.get("deprel") or "_") for word in words]
    name = str((sentence.metadata or {}).get("sent_id") or "")
    return tree([word["form"] for word in words], [word["head"] for word in words], labels, name)


def to_conllu(structure: Structure) -> Any:
    """The structure as a ``conllu.TokenList``, with forms, heads and relations.

    Raises:
        WriteError: it is not a tree, or a label cannot be written in a column: see the writer ``conllu``.
    """
    with needing("conllu", "trees"):
        import conllu
    return conllu.parse(as_text(Item(structure, id=structure.name), "conllu"))[0]


add_converter("conllu", "conllu.TokenList", "sentences with heads, and back", from_conllu, to_conllu)
