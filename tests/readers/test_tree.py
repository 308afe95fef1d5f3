from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.errors import StructureError
from structpe.formats import tree
from tests.together import together


@st.composite
def any_heads(draw: st.DrawFn) -> list[int]:
    size = draw(st.integers(1, 8))
    return draw(st.lists(st.integers(0, size), min_size=size, max_size=size))


@given(any_heads())
def test_accepts_what_networkx_calls_a_rooted_tree(heads):
    tokens = [f"w{i}" for i in range(1, len(heads) + 1)]
    graph = nx.DiGraph([(head, i) for i, head in enumerate(heads, 1)])
    if nx.is_arborescence(graph) and heads.count(0) == 1:
        structure = tree(tokens, heads)
        assert structure.parents().tolist() == [head - 1 for head in heads]
        assert structure.root == heads.index(0)
    else:
        with pytest.raises(StructureError):
            tree(tokens, heads)


def test_edges_lead_from_head_to_dependent_in_the_order_of_dependents():
    structure = tree(["the", "dog", "barks"], [2, 3, 0], ["det", "nsubj", "root"])
    assert structure.edges.tolist() == [[1, 0], [2, 1]]
    assert structure.relations == ("det", "nsubj")
    assert structure.order is not None
    assert structure.order.tolist() == [0, 1, 2]
    assert structure.root == 2


def test_numpy_heads_and_one_token_will_do():
    assert tree(["a", "b"], np.array([0, 1])).edges.tolist() == [[0, 1]]
    assert tree(["a"], [0], ["root"]).relations == ()


@together(
    "tokens, heads, labels, message",
    [
        ("", [], None, "x:1: the sentence has no token; a tree needs at least one"),
        ("a b", [0], None, "1 heads for 2 tokens; give one per token"),
        ("a b", [0, 1], ["root"], "1 labels for 2 tokens; give one per token"),
        ("a b", [0, 3], None, "the head of token 2 ('b') is 3; tokens are 1..2, and 0 marks the root"),
        ("a b", [0, -1], None, "the head of token 2 ('b') is -1; tokens are 1..2"),
        ("a b", [0, 1.0], None, "the head of token 2 ('b') is 1.0; give the number of a token, or 0 for the root"),
        ("a b", [0, None], None, "the head of token 2 ('b') is None; give the number of a token"),
        ("a b", [0, True], None, "the head of token 2 ('b') is True; give the number of a token"),
        ("a b", [0, float("nan")], None, "the head of token 2 ('b') is nan; give the number of a token"),
        ("a b", [0, 2], None, "token 2 ('b') is its own head; give another token, or 0 if it is the root"),
        ("a b", [0, 0], None, "one root, this one has 2: tokens 1 ('a'), 2 ('b'); set head 0 once"),
        ("a b", [2, 1], None, "dependent of the next: 1 ('a') -> 2 ('b') -> 1 ('a'), and no token has head 0"),
        ("a b c d", [0, 3, 4, 2], None, "dependent of the next: 2 ('b') -> 3 ('c') -> 4 ('d') -> 2 ('b')"),
    ],
)
def test_what_is_no_tree_is_said(tokens, heads, labels, message):
    with pytest.raises(StructureError) as caught:
        tree(tokens.split(), heads, labels, name="x:1")
    assert message in str(caught.value)
    assert str(caught.value).startswith("x:1: ")


def test_a_long_chain_needs_no_recursion():
    assert tree(["w"] * 5000, list(range(5000))).size == 5000
