"""A component of spaCy's pipelines: ``nlp.add_pipe("structpe")`` leaves positions in dependency trees on each ``Doc``.

spaCy finds it through the entry point ``spacy_factories``, without an import of structpe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc, Span

from structpe.encodings.base import ENCODINGS, Column, Encoding, as_encoding
from structpe.errors import EncodingError, PositionError
from structpe.formats.spacy import sentences

__all__ = ["DEFAULTS", "TreePositions", "create"]

DEFAULTS: list[str | dict[str, Any]] = ["depth", "spr-relative", {"name": "branch-path", "binary": True}, "distance"]
"""SPR (Wang X. et al. 2019), absolute and relative; TPE (Shiv and Quirk 2019) of the binary tree; signed distances."""


KEY = "structpe"
"""Of ``doc.user_data``."""


class TreePositions:
    """Encodes the sentences of a parsed ``Doc``.

    ``doc._.structpe`` is a list with a mapping per sentence: from the name of an encoding to (n, ...) values of its n
    tokens, or (n, n, ...) of pairs, rows being queries. ``span._.structpe`` is this mapping for a ``Span`` within one
    sentence, such as those of ``doc.sents``. They are arrays of NumPy, which ``DocBin(store_user_data=True)`` keeps.
    If words, heads or sentences of the Doc are changed afterwards, both raise an :class:`EncodingError`.

    Args:
        encodings: names, or mappings with ``name`` and options.

    Raises:
        PositionError: there is no encoding of a name, or no such option.
        EncodingError: two encodings have one name, or one lists pairs.
    """

    def __init__(self, encodings: Sequence[str | Mapping[str, Any]] = DEFAULTS) -> None:
        self.encodings = [as_encoding(each, error=PositionError) for each in encodings]
        names = [each.name for each in self.encodings]
        if twice := {name for name in names if names.count(name) > 1}:
            raise EncodingError(f"two encodings are named {twice.pop()!r}; add the component twice, or leave one out")
        if listing := [each.name for each in self.encodings if each.sparse]:
            raise EncodingError(f"encoding {listing[0]!r} lists pairs, which have no matrix; leave it out")

    def __call__(self, doc: Doc) -> Doc:
        """Set ``doc._.structpe``.

        Raises:
            ConversionError: the Doc has no heads; put the component behind a parser.
            EncodingError: a tree lacks what an encoding needs.
        """
        trees = [item.structure for item in sentences(doc, whitespace=True)]
        columns = {encoding: encoding.many(trees) for encoding in self.encodings} if trees else {}
        doc._.structpe = [_arrays(columns, number) for number in range(len(trees))]
        return doc


def _arrays(columns: Mapping[Encoding, Column], number: int) -> dict[str, NDArray[Any]]:
    """The values of a sentence. Copies, since a slice would keep the whole column in memory."""
    found = {encoding: column[number] for encoding, column in columns.items()}
    return {e.name: np.array(each.values if e.arity == 1 else each.pairs()) for e, each in found.items()}


def _digest(doc: Doc) -> bytes:
    """A digest of what positions depend on: words, heads and their relations, and where sentences begin."""
    if not len(doc):
        return b""
    starts = np.array([sentence.start for sentence in doc.sents])
    return blake2b(doc.to_array(["ORTH", "HEAD", "DEP"]).tobytes() + starts.tobytes(), digest_size=16).digest()


def _set(doc: Doc, found: Sequence[Mapping[str, NDArray[Any]]]) -> None:
    doc.user_data[KEY] = {"digest": _digest(doc), "sentences": found}


def _get(doc: Doc) -> Sequence[Mapping[str, NDArray[Any]]] | None:
    stored = doc.user_data.get(KEY)
    if stored is None:
        return None
    if stored["digest"] != _digest(doc):
        raise EncodingError(
            "the words, heads or sentences of the Doc have been changed since its positions were made, for example by "
            "merging tokens; make them again, with doc = nlp.get_pipe('structpe')(doc)"
        )
    found: Sequence[Mapping[str, NDArray[Any]]] = stored["sentences"]
    return found


def _of_span(span: Span) -> dict[str, NDArray[Any]]:
    found = span.doc._.structpe
    if found is None:
        raise EncodingError("the Doc has no positions; add the component 'structpe' to the pipeline, behind the parser")
    number, sentence = next(
        (number, each)
        for number, each in enumerate(span.doc.sents)
        if span.start < each.end or each.end == len(span.doc)
    )
    if span.end > sentence.end:
        raise EncodingError(
            f"the Span {span.text[:40]!r} is in several sentences, and positions are those of one; take parts of "
            f"doc.sents"
        )
    part = slice(span.start - sentence.start, span.end - sentence.start)
    return {
        name: values[part, part] if ENCODINGS[name].arity == 2 else values[part]
        for name, values in found[number].items()
    }


Doc.set_extension("structpe", getter=_get, setter=_set, force=True)
Span.set_extension("structpe", getter=_of_span, force=True)


@Language.factory(
    "structpe",
    default_config={"encodings": DEFAULTS},
    assigns=["doc._.structpe", "span._.structpe"],
    requires=["token.dep", "token.head", "doc.sents"],
)
def create(nlp: Language, name: str, encodings: list[str | dict[str, Any]]) -> TreePositions:
    """The component, for spaCy's configurations."""
    del nlp, name
    return TreePositions(encodings)
