"""Batches of tokens with positions: every token has the unit that it is a piece of, or none."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers

from structpe.adapters import inject
from structpe.adapters.transformers import Collator, TokenPositions
from structpe.encodings import Distance, Offset, Order
from structpe.errors import PositionError, StructPEError
from structpe.structure import Structure, path
from tests.adapters.models import GRAPH, SMALL, logits, small, tokenizer, without_dropout

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "a", "b", "c", "d", "the", "graph", ":", "##b", "says"]


def words(ids: torch.Tensor) -> list[list[str]]:
    return [[WORDS[i] for i in row] for row in ids.tolist()]


def spanned(text: str, spans: list[tuple[int, int]]) -> Structure:
    """A sentence as a path, with the place of each word."""
    made = path([text[start:end] for start, end in spans])
    return Structure(made.nodes, made.edges, order=made.order, root=0, features={"span": np.array(spans)})


def test_special_tokens_prompts_and_padding_have_no_unit() -> None:
    collate = Collator(tokenizer(), [Order()], True, prompt="the graph :", suffix=": says")
    batch = collate([{"structure": path(["a", "bb", "d"])}, {"structure": path(["c"]), "target": "a b"}][:1])
    assert words(batch["input_ids"]) == [["[CLS]", "the", "graph", ":", "a", "b", "##b", "d", ":", "says", "[SEP]"]]
    assert batch["structpe"].units.tolist() == [[-1, -1, -1, -1, 0, 1, 2, 3, -1, -1, -1]]
    assert batch["attention_mask"].tolist() == [[1] * 11]
    assert batch["structpe"].positions[Order()].tolist() == [[0, 1, 2, 3]]


def test_a_shorter_text_is_padded_on_the_side_of_the_tokenizer() -> None:
    items: list[dict[str, Any]] = [{"structure": path(["a", "b", "c"])}, {"structure": path(["d"])}]
    right = Collator(tokenizer(), [Order()], True)(items)
    assert words(right["input_ids"])[1] == ["[CLS]", "d", "[SEP]", "[PAD]", "[PAD]"]
    assert right["structpe"].units.tolist() == [[-1, 0, 1, 2, -1], [-1, 0, -1, -1, -1]]
    assert right["attention_mask"].tolist()[1] == [1, 1, 1, 0, 0]
    left = Collator(tokenizer(padding_side="left"), [Order()], True, special=False)(items)
    assert words(left["input_ids"])[1] == ["[PAD]", "[PAD]", "d"]
    assert left["structpe"].units.tolist() == [[0, 1, 2], [-1, -1, 0]]


def test_the_target_of_an_encoder_decoder_is_its_labels() -> None:
    items = [{"structure": GRAPH, "target": "a b"}, {"structure": SMALL, "target": "c"}]
    batch = Collator(tokenizer(), [Order()], True)([{**item, "structure": path(["a"])} for item in items])
    assert batch["labels"].tolist() == [[1, 4, 5, 2], [1, 6, 2, -100]]


def test_the_target_of_a_decoder_is_written_behind_the_structure() -> None:
    items = [{"structure": path(["a", "b"]), "target": "c d"}, {"structure": path(["a"]), "target": "d"}]
    collate = Collator(tokenizer(), [Offset()], False, special=False, suffix=": says")
    batch = collate(items)
    assert words(batch["input_ids"])[0] == ["a", "b", ":", "says", "c", "d", "[SEP]"]
    assert batch["labels"].tolist() == [[-100] * 4 + [6, 7, 2], [-100] * 3 + [7, 2, -100, -100]]
    assert batch["structpe"].units.tolist() == [[0, 1, -1, -1, -1, -1, -1], [0, -1, -1, -1, -1, -1, -1]]


def test_in_a_text_each_piece_belongs_to_the_word_that_it_is_in() -> None:
    text = "the a : bb d"
    structure = spanned(text, [(4, 5), (8, 10), (11, 12)])
    batch = Collator(tokenizer(), [Order()], True)([{"structure": structure, "text": text}])
    assert words(batch["input_ids"]) == [["[CLS]", "the", "a", ":", "b", "##b", "d", "[SEP]"]]
    assert batch["structpe"].units.tolist() == [[-1, -1, 0, -1, 1, 2, 3, -1]]
    backwards = spanned(text, [(11, 12), (8, 10), (4, 5)])  # nodes in another order than the text
    found = Collator(tokenizer(), [Order()], True)([{"structure": backwards, "text": text}])
    assert words(found["input_ids"]) == words(batch["input_ids"])
    assert found["structpe"].units.tolist() == [[-1, -1, 3, -1, 1, 2, 0, -1]]


def test_tokens_of_ones_own_say_what_they_are() -> None:
    collate = Collator(tokenizer(), [Order()], True)
    batch = collate([{"structure": path(["x", "y"]), "input_ids": [4, 9, 5], "units": [1, -1, 0], "labels": 1}])
    assert batch["input_ids"].tolist() == [[4, 9, 5]]
    assert batch["structpe"].units.tolist() == [[1, -1, 0]]
    assert batch["labels"].tolist() == [1]
    for units in ([0, 1], [0, 1, 2], [0, -2, 1]):
        with pytest.raises(PositionError, match="for each of the 3 tokens one of the 2 units or -1; given are"):
            collate([{"structure": path(["x", "y"]), "input_ids": [4, 9, 5], "units": units}])


def test_labels_of_tokens_are_padded_and_other_numbers_stacked() -> None:
    items: list[dict[str, Any]] = [
        {"structure": path(["a", "b"]), "labels": [1, 2, 3, 4], "weight": 0.5},
        {"structure": path(["a"]), "labels": [5, 6, 7], "weight": 2.0},
    ]
    batch = Collator(tokenizer(), [Order()], True)(items)
    assert batch["labels"].tolist() == [[1, 2, 3, 4], [5, 6, 7, -100]]
    assert batch["weight"].tolist() == [0.5, 2.0]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({}, "'structure', a Structure; given is NoneType; structpe.as_structure makes"),
        ({"structure": "a graph"}, "given is str"),
        ({"structure": path(["a"]), "id": "first"}, "'id' of the items is not a number"),
    ],
)
def test_what_is_no_item(item: dict[str, Any], message: str) -> None:
    with pytest.raises(PositionError, match=message):
        Collator(tokenizer(), [Order()], True)([item])


def test_a_tokenizer_without_padding() -> None:
    fast = Tokenizer(models.WordLevel({"a": 0, "?": 1}, "?"))
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    plain: Any = hf.PreTrainedTokenizerFast
    collate = Collator(plain(tokenizer_object=fast), [Order()], False)
    assert collate([{"structure": path(["a"])}])["input_ids"].tolist() == [[0]]
    with pytest.raises(PositionError, match="the tokenizer has no padding; set it"):
        collate([{"structure": path(["a"])}, {"structure": path(["a", "a"])}])


def test_a_slow_tokenizer_is_refused() -> None:
    with pytest.raises(StructPEError, match="is not a known tokenizer"):
        Collator(object(), [Order()], True)


def test_it_can_be_sent_to_a_worker() -> None:
    collate = Collator(tokenizer(), [Distance()], True)
    batch = pickle.loads(pickle.dumps(collate))([{"structure": GRAPH}])
    again = pickle.loads(pickle.dumps(batch))
    assert torch.equal(again["structpe"].units, batch["structpe"].units)


def test_positions_are_handed_on_by_trainers() -> None:
    given = Collator(tokenizer(), [Order()], True)([{"structure": path(["a"])}])["structpe"]
    assert isinstance(given.to("cpu", non_blocking=True), TokenPositions)
    assert len(given) == 1
    with pytest.raises(PositionError, match="a unit for each token, or -1"):
        TokenPositions(given.positions, 1, torch.zeros(3), given.root)


@pytest.mark.parametrize("name", ["t5", "llama", "bert"])
def test_a_model_learns_from_batches_of_its_collator(name: str) -> None:
    model = without_dropout(small(name))
    handle = inject(model, {"name": "t5", "encoding": "undirected-distance"}, freeze=True)
    collate = handle.collator(tokenizer(), prompt="the graph :")
    items: list[dict[str, Any]] = [{"structure": GRAPH}, {"structure": SMALL}]
    key = "labels" if name == "bert" else "target"
    items = [{**item, key: [5] * (5 + len(item["structure"].nodes)) if name == "bert" else "c d"} for item in items]
    batch = collate(items)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1.0)
    losses = []
    for _ in range(6):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]
    logits(model, **{k: v for k, v in batch.items() if k != "labels" or name == "t5"})


def labelled(*labels: Any) -> list[dict[str, Any]]:
    return [
        {"structure": path(["a"] * (i + 1)), **({} if each is None else {"labels": each})}
        for i, each in enumerate(labels)
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_items_without_a_target_or_label_have_ignored_ones(order: int) -> None:
    of_text = Collator(tokenizer(), [Order()], True, special=False)
    targets = [{"structure": path(["a", "b"]), "target": "c"}, {"structure": path(["d"])}][::order]
    assert of_text(targets)["labels"].tolist() == [[1, 6, 2], [-100] * 3][::order]
    decoder = Collator(tokenizer(), [Order()], False, special=False)
    assert decoder(targets)["labels"].tolist() == [[-100, -100, 6, 2], [-100] * 4][::order]
    assert of_text(labelled(1, None)[::order])["labels"].tolist() == [1, -100][::order]
    rows = of_text(labelled([5], None)[::order])["labels"].tolist()
    assert rows == [[5, -100], [-100, -100]][::order]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "a batch needs one item or more"),
        (labelled(None, 0.5), "item 0 of the batch has no 'labels', and others have"),
        (labelled(0.5, None), "item 1 of the batch has no 'labels'"),
        ([{"structure": path(["a"])}, {"structure": path(["a"]), "weight": 2}], "item 0 of the batch has no 'weight'"),
        ([{"structure": path(["a"]), "weight": 2}, {"structure": path(["a"])}], "item 1 of the batch has no 'weight'"),
    ],
)
def test_what_nothing_stands_for_is_missed_by_name(items: Any, message: str) -> None:
    with pytest.raises(PositionError, match=message):
        Collator(tokenizer(), [Order()], True)(items)


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "roberta", "t5"])
def test_padding_on_either_side_changes_no_scores(name: str) -> None:
    for side in ("left", "right"):
        model = small(name)
        handle = inject(model, {"name": "shaw", "encoding": "undirected-distance"}, start="own")
        collate = handle.collator(tokenizer(padding_side=side), special=False)
        items = [{"structure": SMALL}, {"structure": GRAPH}]
        options = {"decoder_input_ids": torch.tensor([[0, 5]])} if name == "t5" else {}
        both = {**collate(items), **{key: each.expand(2, -1) for key, each in options.items()}}
        assert ("position_ids" in both) == (side == "left" and name in ("gpt2", "llama", "bert"))
        with torch.no_grad():
            together, alone = model(**both).logits[0], model(**collate(items[:1]), **options).logits[0]
        together = together[-len(alone) :] if side == "left" else together[: len(alone)]
        assert torch.allclose(together, alone, atol=1e-5), side


def test_a_decoder_writes_behind_a_batch_padded_on_the_left_what_it_writes_alone() -> None:
    model = small("gpt2")
    collate = inject(model, {"name": "shaw", "encoding": "undirected-distance"}, start="own").collator(
        tokenizer(padding_side="left"), special=False
    )
    options = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    both = model.generate(**collate([{"structure": SMALL}, {"structure": GRAPH}]), **options)
    alone = model.generate(**collate([{"structure": SMALL}]), **options)
    assert both[0, -4:].tolist() == alone[0, -4:].tolist()


def test_a_target_is_in_the_target_language() -> None:
    fast = tokenizer()
    fast.tgt_lang = "xx"
    asked: list[dict[str, Any]] = []

    class OfTwo(type(fast)):  # type: ignore[misc]
        def __call__(self, *given: Any, **named: Any) -> Any:
            asked.append(named)
            return {"input_ids": [9, 4, 2]}

    fast.__class__ = OfTwo
    batch = Collator(fast, [Order()], True)([{"structure": path(["a"]), "target": "a"}])
    assert batch["labels"].tolist() == [[9, 4, 2]]
    assert asked[0]["text_target"] == "a"
