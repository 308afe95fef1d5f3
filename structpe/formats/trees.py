"""Tokens with heads and labels: a rooted tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from structpe.errors import FEW, StructureError, listed
from structpe.formats.text import shown
from structpe.structure import Structure

__all__ = ["tree"]


def tree(tokens: Sequence[str], heads: Sequence[int], labels: Sequence[str] | None = None, name: str = "") -> Structure:
    """A dependency tree: an edge from each head to each of its dependents.

    Args:
        tokens: the words in their order, n of them.
        heads: number of the head of each token. Tokens are numbered from 1, as in CoNLL; 0 marks the root.
        labels: relation of each token to its head; that of the root is dropped.
        name: where the tree comes from, for error messages.

    Returns:
        A structure whose nodes are the tokens, in their order; edges are in the order of their dependents.

    Raises:
        StructureError: a head is not an integer, out of range or the token itself; there is no root, two roots or a
            cycle; the number of heads or labels differs from that of the tokens.
    """
    heads = list(heads)
    if problem := _problem(list(tokens), heads, labels):
        raise StructureError(problem).at(*([name] if name else []))
    edges = [(head - 1, i) for i, head in enumerate(heads) if head]
    return Structure(
        tuple(tokens),
        np.array(edges, dtype=np.int64).reshape(-1, 2),
        tuple(label for label, head in zip(labels, heads, strict=True) if head) if labels is not None else (),
        order=np.arange(len(tokens)),
        root=heads.index(0),
        name=name,
    )


def _problem(tokens: list[str], heads: list[int], labels: Sequence[str] | None) -> str:
    """The problem of the tree; empty if there is none."""
    if not tokens:
        return "the sentence has no token; a tree needs at least one"
    for what, given in (("heads", heads), ("labels", labels)):
        if given is not None and len(given) != len(tokens):
            return f"{len(given)} {what} for {len(tokens)} tokens; give one per token"
    for i, head in enumerate(heads):
        if isinstance(head, bool) or not isinstance(head, (int, np.integer)):
            return f"the head of token {_named(tokens, i)} is {head!r}; give the number of a token, or 0 for the root"
        if not 0 <= head <= len(tokens):
            return f"the head of token {_named(tokens, i)} is {head}; tokens are 1..{len(tokens)}, and 0 marks the root"
        if head == i + 1:
            return f"token {_named(tokens, i)} is its own head; give another token, or 0 if it is the root"
    return _shape_problem(tokens, heads)


def _shape_problem(tokens: list[str], heads: list[int]) -> str:
    roots = [i for i, head in enumerate(heads) if not head]
    if len(roots) > 1:
        named = listed(_named(tokens, i) for i in roots)
        return f"a tree has one root, this one has {len(roots)}: tokens {named}; set head 0 once"
    if cycle := _cycle(heads):
        way = [_named(tokens, i) for i in [*cycle, cycle[0]]]
        cut = [*way[:FEW], f"({len(way) - FEW - 1} more)", way[-1]] if len(way) > FEW + 2 else way
        named = " -> ".join(cut)
        lost = "" if roots else ", and no token has head 0, the root's"
        return f"a tree has no cycle, but here is one, each token the dependent of the next: {named}{lost}"
    return ""


def _cycle(heads: list[int]) -> list[int]:
    """The tokens of one cycle; empty if all lead to the root. Every step goes to a new token."""
    seen: set[int] = set()
    for start in range(len(heads)):
        way: list[int] = []
        at = start
        while at >= 0 and at not in seen:
            seen.add(at)
            way.append(at)
            at = heads[at] - 1
        if at in way:
            return way[way.index(at) :]
    return []


def _named(tokens: list[str], i: int) -> str:
    return f"{i + 1} ({shown(tokens[i])})"
