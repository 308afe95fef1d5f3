"""Readable texts of units, in reading order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from structpe.pictures._plot import label
from structpe.structure import Structure

__all__ = ["in_order", "unit_labels"]

MARK, GOES_ON = "▁", "##"
"""What some tokenizers write for a space, and BERT's for the part of a word that follows another."""
PRINTED = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
"""Bytes that a byte-level tokenizer writes as the character of that number; the others follow from 256 on."""
BYTES = {chr(byte): byte for byte in PRINTED} | {
    chr(256 + place): byte for place, byte in enumerate(sorted(set(range(256)) - set(PRINTED)))
}
"""The byte of each of its characters (Radford et al. 2019, GPT-2)."""


def in_order(structure: Structure) -> NDArray[np.int64]:
    """(u,) the units in reading order: by the place of their node, if there is an order."""
    owner = structure.unit_owner
    return owner.argsort(kind="stable") if structure.order is None else structure.order[owner].argsort(kind="stable")


def unit_labels(structure: Structure) -> list[str]:
    """(u,) the text of each unit, without the tokenizer's replacements of spaces and bytes."""
    texts = list(structure.unit_texts)
    if structure.units is None:
        return [label(text) for text in texts]
    if _of_bytes(structure):
        texts = [_decoded(text) for text in texts]
    whole = [structure.nodes[node] for node in structure.unit_owner.tolist()]
    texts = [text if GOES_ON in node else text.removeprefix(GOES_ON) for text, node in zip(texts, whole, strict=True)]
    return [label(text.replace(MARK, " ")) or "␣" for text in texts]


def _of_bytes(structure: Structure) -> bool:
    """Whether the units of some node spell its label only if their characters are read as bytes."""
    whole = [""] * structure.size
    for text, node in zip(structure.unit_texts, structure.unit_owner.tolist(), strict=True):
        whole[node] += text
    for written, node in zip(whole, structure.nodes, strict=True):
        meant = _decoded(written).strip().casefold()
        if written and meant and meant != written.casefold() and meant in node.casefold():
            return True
    return False


def _decoded(text: str) -> str:
    if not all(character in BYTES for character in text):
        return text
    return bytes(BYTES[character] for character in text).decode("utf-8", errors="replace")
