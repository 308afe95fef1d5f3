"""A graph as a text of a tokenizer's tokens, each of which is a unit of the graph or none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from structpe.errors import StructureError
from structpe.structure import Structure
from structpe.transforms import levi, linearise
from structpe.transforms.texts import Form, written
from tests.examples import examples
from tests.strategies import structures


def pieces(prefix: bool = False) -> Tokenizer:
    """Bytes and a few pairs of them, with <s> and </s> around a text."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    made.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=letters, show_progress=False
    )
    made.train_from_iterator(["want boy girl go believe :ARG0 :ARG1 describe Text the (boy)"] * 3, trainer)
    made.post_processor = processors.TemplateProcessing("<s> $A </s>", None, [("<s>", 0), ("</s>", 1)])
    return made


BOY = Structure(
    ("want", "boy", "go"), np.array([[0, 1], [0, 2], [2, 1]]), (":ARG0", ":ARG1", ":ARG0"), order=np.arange(3), root=0
)


def test_every_piece_belongs_to_its_word_and_each_mention_has_units_of_its_own() -> None:
    made = written(BOY, pieces(), "linear", prompt="describe: ", suffix=" Text:")
    assert made.text == "describe: want :ARG0 boy :ARG1 ( go :ARG0 boy ) Text:"
    assert made.ids.tolist() == pieces().encode(made.text).ids
    whole = made.structure
    assert (whole.nodes, whole.edges.tolist()) == (levi(BOY).nodes, levi(BOY).edges.tolist())
    said: dict[int, str] = {}
    text = {unit: pieces().id_to_token(i) for unit, i in zip(made.units.tolist(), made.ids.tolist(), strict=True)}
    for unit, owner in enumerate(whole.unit_owner.tolist()):
        said[owner] = said.get(owner, "") + text[unit].replace("Ġ", " ")
    assert said == {0: " want", 1: " boy boy", 2: " go", 3: " :ARG0", 4: " :ARG1", 5: " :ARG0"}
    assert made.units[[0, -1]].tolist() == [-1, -1]
    assert [added for added in made.added if added] == [True, True]


@pytest.mark.parametrize(
    ("form", "text"), [("levi", "want :ARG0 boy :ARG1 go :ARG0"), ("plain", "want boy go"), ("linear", None)]
)
def test_the_forms(form: Form, text: str | None) -> None:
    made = written(BOY, pieces(), form)
    assert made.text == (text or " ".join(linearise(BOY).nodes))
    assert made.structure.size == (3 if form == "plain" else 6)


@examples(60)
@given(structures(units=False), st.sampled_from(["levi", "plain", "linear"]), st.booleans(), st.text(max_size=5))
def test_units_are_counted_in_the_order_of_their_nodes_and_cover_all_labels(
    graph: Structure, form: Form, prefix: bool, prompt: str
) -> None:
    if form == "linear" and graph.order is None:
        with pytest.raises(StructureError, match="has no reading order"):
            written(graph, pieces(), form)
        return
    made = written(graph, pieces(prefix), form, prompt)
    there = made.units[made.units >= 0]
    assert sorted(there.tolist()) == list(range(made.structure.unit_count))
    assert (np.diff(made.structure.unit_owner) >= 0).all()
    assert set(made.structure.unit_owner.tolist()) == set(range(made.structure.size))
    pieces_of = [made.structure.unit_texts[unit] for unit in there]
    assert pieces_of == [pieces().id_to_token(i) for i, unit in zip(made.ids, made.units, strict=True) if unit >= 0]


def test_a_token_over_two_labels_is_of_that_of_which_it_has_more() -> None:
    whole = Tokenizer(models.WordLevel({"a bbb": 0, "?": 1}, "?"))
    graph = Structure(("a", "bbb"), np.array([[0, 1]]), order=np.arange(2))
    assert written(graph, whole, "plain").structure.unit_owner.tolist() == [1]


def test_labels_without_a_token() -> None:
    blank = Tokenizer(models.WordLevel({"x": 0}, "x"))
    blank.pre_tokenizer = pre_tokenizers.CharDelimiterSplit("a")
    with pytest.raises(StructureError, match="the tokenizer has no token for any label of the graph; give another"):
        written(Structure(("a",), np.zeros((0, 2), dtype=int)), blank, "plain")
