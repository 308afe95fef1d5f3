"""Writes graphs.txt: AMR graphs of about 60 nodes, each of several sentences of the AMR sample.

    python datasets/long_amr_sample/make.py

Sentences come from ../amr_sample/train.txt in an order drawn with a fixed seed; each is used once at the most. As in
published AMR graphs of several sentences, the root is multi-sentence, its roles are :snt1, :snt2, ..., and a variable
begins with the number of its sentence. The same input gives the same bytes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).parent
SEED, COUNT, NODES = 0, 64, 60


def sentences(text: str) -> Iterator[tuple[str, list[str], int]]:
    """The words of each sentence, the tokens of its graph without alignments, and its number of nodes."""
    for block in text.strip().split("\n\n"):
        lines = block.splitlines()
        words = next(line for line in lines if line.startswith("# ::snt ")).removeprefix("# ::snt ")
        graph = re.sub(r"~e\.\d+", "", " ".join(line for line in lines if not line.startswith("#")))
        tokens = re.findall(r'"[^"]*"|[()]|[^\s()]+', graph)
        yield words, tokens, tokens.count("/") + sum(is_constant(tokens, i) for i in range(len(tokens)))


def is_constant(tokens: list[str], i: int) -> bool:
    """Whether a token is a value without a variable, such as -, 2 or "Mira"."""
    target = i > 0 and tokens[i - 1].startswith(":") and tokens[i] != "("
    return target and tokens[i] not in variables(tokens)


def variables(tokens: list[str]) -> set[str]:
    """Those of a graph."""
    return {before for before, token in pairwise(tokens) if token == "/"}


def numbered(tokens: list[str], number: int) -> str:
    """A graph on one line, whose variables begin with s and the number of the sentence."""
    known = variables(tokens)
    pairs = pairwise(["", *tokens])
    renamed = [f"s{number}{token}" if token in known and before != "/" else token for before, token in pairs]
    return " ".join(renamed).replace("( ", "(").replace(" )", ")")


def main() -> None:
    """Write the file beside this one."""
    every = list(sentences((HERE.parent / "amr_sample" / "train.txt").read_text(encoding="utf-8")))
    random.Random(SEED).shuffle(every)
    blocks = []
    for number in range(1, COUNT + 1):
        size, words, rows = 1, [], ["(m / multi-sentence"]
        while abs(size + every[-1][2] - NODES) < abs(size - NODES):
            sentence, tokens, nodes = every.pop()
            size, words = size + nodes, [*words, sentence]
            rows.append(f"    :snt{len(words)} {numbered(tokens, len(words))}")
        head = f"# ::id island.long.{number}\n# ::snt {' '.join(words)}\n"
        blocks.append(head + "\n".join(rows) + ")\n")
    (HERE / "graphs.txt").write_text("\n".join(blocks), encoding="utf-8")


if __name__ == "__main__":
    main()
