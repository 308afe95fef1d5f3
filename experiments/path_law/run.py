"""The path-graph law on real sentences: T5 on graph distance equals T5 on sequential offsets, to the bit.

    python experiments/path_law/run.py FILE.conllu [FILE.conllu ...]

Every sentence is a path graph. Both models have the same buckets; whatever comes out of attention must be the same
bits, by every kernel that computes biases.
"""

from __future__ import annotations

import sys

import torch

import structpe
from structpe.attention import KERNELS
from structpe.encodings import Distance, Offset
from structpe.positions import MODELS, Dims, Site

DIMS = Dims(width=32, heads=4, layers=1)
BATCH = 64


def main() -> None:
    """Count sentences, words and differing numbers per file."""
    torch.manual_seed(0)
    on_offset, on_distance = (MODELS["t5"](DIMS, encoding=encoding) for encoding in (Offset(), Distance()))
    with torch.no_grad():
        on_distance.table.weight[:, : on_offset.rows.size] = on_offset.table.weight
    for file in sys.argv[1:]:
        sentences = [structpe.path(item.structure.nodes) for item in structpe.read(file, "conllu")]
        sentences.sort(key=lambda sentence: sentence.size)
        different = 0
        for first in range(0, len(sentences), BATCH):
            different += compare(sentences[first : first + BATCH], on_offset, on_distance)
        words = sum(sentence.size for sentence in sentences)
        print(f"{file}: {len(sentences)} sentences, {words} words, {different} numbers differ")


@torch.no_grad()
def compare(sentences: list[structpe.Structure], on_offset: torch.nn.Module, on_distance: torch.nn.Module) -> int:
    """How many numbers of the outputs differ, over all kernels; padded queries are left out."""
    positions = structpe.encode(sentences, [Offset(), Distance()])
    most = max(sentence.size for sentence in sentences)
    q, k, v = torch.randn(3, len(sentences), DIMS.heads, most, DIMS.head)
    present = torch.arange(most)[None] < torch.tensor([sentence.size for sentence in sentences])[:, None]
    mask = structpe.Terms(mask=(present[:, None, None, :],))
    one, two = (model.terms(model.prepare(positions), Site(0)) + mask for model in (on_offset, on_distance))
    real = present[:, None, :, None]
    return sum(
        int(((structpe.attend(q, k, v, one, kernel) != structpe.attend(q, k, v, two, kernel)) & real).sum())
        for kernel in KERNELS
        if KERNELS[kernel].can(one.used() | two.used()) and not KERNELS[kernel].absent("cpu")
    )


if __name__ == "__main__":
    main()
