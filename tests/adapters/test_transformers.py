"""Position models in models of Hugging Face: at first nothing changes, then all of it is as attention with terms."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
import transformers as hf

from structpe.adapters import dims, eject, inject, transformers
from structpe.adapters._injection import Pass
from structpe.adapters._tokens import NONE
from structpe.adapters.transformers import TokenPositions, attention, load, take_t5
from structpe.attention import additive, attend
from structpe.encodings import Offset
from structpe.errors import PositionError, StoreError
from structpe.positions import Dims, PositionModel, Site, build
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.terms import Lookup, Terms
from structpe.transforms import levi
from tests.adapters.models import (
    CONFIGS,
    ENCODERS,
    GRAPH,
    HEADED,
    HEADS,
    LAYERS,
    SMALL,
    UNITS,
    logits,
    small,
    texts,
    without_dropout,
)
from tests.modules import ROOT
from tests.positions.cases import NAMES, TREES, made
from tests.representatives import fewer, only
from tests.together import together

ADDED = ("t5", "shaw", "graformer")
WHERE = [(name, "encoder") for name in ENCODERS]
WHERE += [(name, "decoder") for name in ("llama", "gpt2")] + [("t5", "cross"), ("bart", "cross")]


def given(model: Any, *structures: Any) -> TokenPositions:
    """Positions of two texts for all position models of a model."""
    encodings = [e for each in model.structpe.values() for e in each.position.encodings]
    return TokenPositions.of(structures or (GRAPH, SMALL), UNITS, encodings, length=8)


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether all is equal up to 1e-6 of the largest, and of 1."""
    return bool((found - expected).abs().max() <= 1e-6 * max(1.0, float(expected.abs().max())))


def randomised(position: PositionModel) -> None:
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in position.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))


ENTERED = [(*each, position) for each in WHERE for position in ADDED]
QUICK = [(*each, ADDED[number % 3]) for number, each in enumerate(WHERE)]
"""Each place once."""


@pytest.mark.parametrize("entered", only(ENTERED, *QUICK), ids="-".join)
def test_at_first_nothing_changes_and_every_number_has_a_gradient(entered: tuple[str, Any, str]) -> None:
    name, where, position = entered
    model = small(name)
    batch = texts(model)
    before = logits(model, **batch)
    injected = inject(model, {"name": position, "encoding": "undirected-distance"}, where=where)
    structpe = given(model)
    assert close(logits(model, **batch, structpe=structpe), before)
    out = model(**batch, structpe=structpe)
    (out.loss if "labels" in batch else out.logits[batch["attention_mask"].bool()].square().sum()).backward()
    for number, parameter in injected.position.named_parameters():
        assert parameter.grad is not None, number
        assert parameter.grad.abs().max() > 0, number
    randomised(injected.position)
    assert not torch.allclose(logits(model, **batch, structpe=structpe), before, atol=1e-3)


@pytest.mark.parametrize("training", only([False, True], True))
@pytest.mark.parametrize("position", fewer(NAMES))
def test_every_position_model_starts_at_the_function_of_the_checkpoint_or_says_why_not(
    position: str, training: bool
) -> None:
    model = without_dropout(small("bert")).double()
    batch = {"input_ids": texts(model, 10)["input_ids"], "attention_mask": torch.ones(2, 10, dtype=torch.int64)}
    before = logits(model, **batch)
    model.train(training)
    try:
        injected = inject(model, made(position, Dims(32, HEADS, LAYERS)))
        units = [[NONE, *range(each.unit_count)] for each in TREES[1:]]
        structpe = TokenPositions.of(TREES[1:], units, injected.position.encodings, length=10)
        after = model(**batch, structpe=structpe).logits
    except PositionError as error:
        check_advice(error)
        return
    assert torch.allclose(after.flatten(0, 1), before, atol=1e-9)
    after.square().sum().backward()
    for number, parameter in injected.position.named_parameters():
        assert parameter.grad is not None, number


def check_advice(error: PositionError) -> None:
    """An error of a position model that cannot enter says what one should do instead."""
    if not ADVICE.search(str(error)):
        raise error


ADVICE = re.compile(r"use start='own'|choose another|choose one|in another model|of one's own|instead=True", re.DOTALL)


class AsInTheOriginal:
    """BERT written out, with the terms of units in place of tokens computed by the reference kernel."""

    def __init__(self, model: Any, position: PositionModel) -> None:
        self.model, self.position = model, position

    def __call__(self, ids: torch.Tensor, structure: Structure) -> torch.Tensor:
        bert, position = self.model.bert, self.position
        prepared = position.prepare(encode([structure], position.encodings).to(ids.device, torch.float64))
        x = position.inputs(bert.embeddings(ids), prepared)
        for number, layer in enumerate(bert.encoder.layer):
            own, site = layer.attention.self, Site(number)
            x = position.layer(x, prepared, site)
            q, k, v = (p(x).view(*x.shape[:2], HEADS, -1).transpose(1, 2) for p in (own.query, own.key, own.value))
            mixed = attend(q, k, v, position.terms(prepared, site), "dense")
            x = layer.attention.output(mixed.transpose(1, 2).flatten(2), x)
            x = layer.output(layer.intermediate(x), x)
        found: torch.Tensor = self.model.cls(x)
        return found[0]


@pytest.mark.parametrize("position", fewer(NAMES))
def test_tokens_without_a_unit_that_nobody_sees_change_nothing(position: str) -> None:
    """Terms of tokens are those of their units, for every term that there is, and every structure of a batch."""
    model = small("bert").double()
    try:
        injected = inject(model, made(position, Dims(32, HEADS, LAYERS)), start="own")
    except PositionError as error:
        check_advice(error)
        return
    places = [[1, 2, 3, 5, 6, 8, 9], [0, 4, 9]]
    units = torch.full((2, 11), NONE)
    batch: dict[str, Any] = {"input_ids": texts(model, 11)["input_ids"]}
    batch["attention_mask"], ids = torch.zeros(2, 11, dtype=torch.int64), torch.zeros(2, 11, dtype=torch.int64)
    for row, each in enumerate(places):
        units[row, each] = torch.arange(len(each))
        batch["attention_mask"][row, each], ids[row, each] = 1, torch.arange(len(each))
    structpe = TokenPositions.of(TREES[1:], units.tolist(), injected.position.encodings)
    with torch.no_grad():
        try:
            found = model(**batch, position_ids=ids, structpe=structpe).logits
        except PositionError as error:
            check_advice(error)
            return
        for row, (each, structure) in enumerate(zip(places, TREES[1:], strict=True)):
            expected = AsInTheOriginal(model, injected.position)(batch["input_ids"][row : row + 1, each], structure)
            assert torch.allclose(found[row, each], expected, atol=1e-8)


class FromAnEntry(PositionModel):
    """A bias that a model of one's own makes of a number per pair; it has no name."""

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims, [Offset()])
        self.slope = torch.nn.Parameter(torch.ones(dims.heads))

    def terms(self, prepared: Any, site: Site) -> Terms:
        return Terms(bias=(prepared[self.encodings[0]].map(lambda x: x[:, None].float() * self.slope),))


def literal_bert(model: Any, batch: dict[str, Any], bias: torch.Tensor) -> torch.Tensor:
    """Scores of a BERT whose attention is written out, with (l, b, h, n, n) added to its scores before the softmax."""
    bert = model.bert
    x, mask = bert.embeddings(batch["input_ids"]), batch["attention_mask"].bool()
    for layer, added in zip(bert.encoder.layer, bias, strict=True):
        own = layer.attention.self
        q, k, v = (p(x).view(*x.shape[:2], HEADS, -1).transpose(1, 2) for p in (own.query, own.key, own.value))
        score = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + added
        mixed = score.masked_fill(~mask[:, None, None], float("-inf")).softmax(-1) @ v
        x = layer.attention.output(mixed.transpose(1, 2).flatten(2), x)
        x = layer.output(layer.intermediate(x), x)
    found: torch.Tensor = model.cls(x)
    return found[mask]


def test_a_bias_is_added_where_both_tokens_have_a_unit_in_every_layer_its_own() -> None:
    model = small("bert")
    injected = inject(model, {"name": "t5-unshared", "encoding": "undirected-distance"}, start="own")
    randomised(injected.position)
    batch, table = texts(model), injected.position.get_parameter("table.weight")
    bias = torch.zeros(LAYERS, 2, HEADS, 8, 8)
    distances = ([[0, 1, 1, 2], [1, 0, 2, 3], [1, 2, 0, 1], [2, 3, 1, 0]], [[0, 1], [1, 0]])
    for row, (units, between) in enumerate(zip(UNITS, distances, strict=True)):
        for i, unit in enumerate(units):
            for j, other in enumerate(units):
                if unit >= 0 and other >= 0:
                    distance = between[unit][other]  # below 8 each distance has a bucket; those ahead are from 16 on
                    bias[:, row, :, i, j] = table[:, 16 + distance if distance else 0]
    with torch.no_grad():
        expected = literal_bert(model, batch, bias)
    assert torch.allclose(logits(model, **batch, structpe=given(model)), expected, atol=1e-5)


def test_a_model_of_your_own_enters_some_layers_only() -> None:
    model = small("bert")
    injected = inject(model, FromAnEntry(dims(model, layers=[1])), layers=[1], start="own")
    batch = texts(model)
    bias = torch.zeros(LAYERS, 2, HEADS, 8, 8)
    for row, units in enumerate(UNITS):
        for i, unit in enumerate(units):
            for j, other in enumerate(units):
                bias[1, row, :, i, j] = (other - unit) * float(unit >= 0 and other >= 0)
    sequences = path(list("abcd")), path(list("ab"))
    with torch.no_grad():
        expected = literal_bert(model, batch, bias)
    assert injected.injected.layers == (1,)
    assert torch.allclose(logits(model, **batch, structpe=given(model, *sequences)), expected, atol=1e-5)


def test_the_table_of_t5_gives_the_bias_of_t5() -> None:
    model = small("t5")
    stacks: list[tuple[Any, str]] = [("encoder", "t5"), ("decoder", "t5-causal")]
    for stack, name in stacks:
        position = take_t5(build(name, dims(model)), model, stack)
        own = model.get_submodule(stack).block[0].layer[0].SelfAttention
        positions = encode([path([""] * 150)], position.encodings)
        (bias,) = position.terms(position.prepare(positions), Site(0)).bias
        assert isinstance(bias, Lookup)
        ours, theirs = bias.dense().movedim(3, 1), own.compute_bias(150, 150)
        causal = torch.ones(150, 150, dtype=torch.bool).tril() | (stack == "encoder")
        assert (ours - theirs)[..., causal].abs().max() == 0


def test_instead_of_its_own_bias_t5_takes_the_same_from_us() -> None:
    model = small("t5")
    batch = texts(model)
    before = logits(model, **batch)
    position = take_t5(build("t5", dims(model)), model)
    inject(model, position, start="own", structures="path", instead=True)
    assert torch.allclose(logits(model, **batch), before, atol=1e-5)
    assert not model.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight.requires_grad


@pytest.mark.parametrize("name", ["glm-local", "glm-global"])
def test_a_graph_language_model_from_t5(name: str) -> None:
    # On a text that is one path of triples' offsets the global model is T5: all of its pairs have a common triple.
    model = small("t5")
    batch = {"input_ids": torch.tensor([[5, 6, 7]]), "attention_mask": torch.ones(1, 3, dtype=torch.int64)}
    batch["labels"] = torch.tensor([[4, 5]])
    before = logits(model, **batch)
    injected = inject(model, take_t5(build(name, dims(model)), model), start="own", instead=True)
    triple = levi(Structure(("head", "tail"), [(0, 1)], ("likes",), root=0))  # type: ignore[arg-type]
    units = [triple.nodes.index(word) for word in ("head", "likes", "tail")]  # in the order of the text
    structpe = TokenPositions.of([triple], [units], injected.position.encodings)
    assert torch.allclose(logits(model, **batch, structpe=structpe), before, atol=1e-5)


def test_t5s_table_needs_the_same_buckets() -> None:
    model = small("t5")
    with pytest.raises(PositionError, match=r"32 buckets and max_distance 128, two-way; .* has 16 and 128"):
        take_t5(build({"name": "t5", "num_buckets": 16}, dims(model)), model)
    with pytest.raises(PositionError, match="no table of T5's buckets"):
        take_t5(build("shaw", dims(model)), model)
    with pytest.raises(PositionError, match="no table of relative biases in its encoder"):
        take_t5(build("t5", dims(small("bert"))), small("bert"))


class Counting(FromAnEntry):
    """Counts what it is asked."""

    asked: ClassVar[list[Any]] = []

    def prepare(self, positions: Any) -> Any:
        self.asked.append("prepare")
        return positions

    def terms(self, prepared: Any, site: Site) -> Terms:
        self.asked.append(site.layer)
        return super().terms(prepared, site)


def test_it_prepares_once_for_a_pass_and_is_asked_once_for_each_layer() -> None:
    model = small("t5")
    inject(model, Counting(dims(model)), start="own")
    batch, structpe = texts(model), given(model, path(list("abcd")), path(list("ab")))
    Counting.asked.clear()
    logits(model, **batch, structpe=structpe)
    assert Counting.asked == ["prepare", 0, 1]
    Counting.asked.clear()
    generated(model, structpe=structpe)
    assert Counting.asked == ["prepare", 0, 1], "the encoder of a model that generates reads once"


# Pitfalls that were found by trying.


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_padding_is_not_read(name: str) -> None:
    model = small(name)
    inject(model, {"name": "t5", "encoding": "undirected-distance"})
    batch, structpe = texts(model), given(model)
    other = copy.deepcopy(batch)
    other["input_ids"][1, 5:] = 7
    assert torch.equal(logits(model, **batch, structpe=structpe), logits(model, **other, structpe=structpe))


def test_without_a_mask_function_padding_would_be_read() -> None:
    """What Hugging Face does with an attention that has no masks registered; ours has them."""
    hf.AttentionInterface.register("structpe-without-masks", transformers.attention)
    model = small("bert")
    batch, other = texts(model), copy.deepcopy(texts(model))
    other["input_ids"][1, 5:] = 7
    model.set_attn_implementation("structpe-without-masks")
    assert not torch.allclose(logits(model, **batch), logits(model, **other), atol=1e-3)
    transformers.register()
    model.set_attn_implementation("structpe")
    assert torch.equal(logits(model, **batch), logits(model, **other))


def test_a_bias_given_to_hugging_face_itself_is_ignored_by_eager_and_refused_by_t5() -> None:
    """Why positions are not handed on as ``position_bias``."""
    model = small("bert")
    batch = texts(model)
    model.set_attn_implementation("eager")
    bias = torch.randn(2, HEADS, 8, 8)
    assert torch.equal(logits(model, **batch, position_bias=bias), logits(model, **batch))
    with pytest.raises(TypeError, match="position_bias"):
        logits(small("t5"), **texts(small("t5")), position_bias=bias)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_another_attention_is_refused_instead_of_ignoring_positions(implementation: str) -> None:
    model = small("bert")
    inject(model, {"name": "t5", "encoding": "undirected-distance"})
    model.set_attn_implementation(implementation)
    with pytest.raises(PositionError, match=f"'{implementation}', which does not ask position models"):
        logits(model, **texts(model), structpe=given(model))


def test_a_batch_without_positions_is_refused_unless_it_says_so() -> None:
    model = small("t5")
    batch = texts(model)
    before = logits(model, **batch)
    injected = inject(model, {"name": "t5", "encoding": "undirected-distance"})
    randomised(injected.position)
    with pytest.raises(PositionError, match="the batch has no positions for it; call it with structpe="):
        logits(model, **batch)
    assert torch.allclose(logits(model, **batch, structpe=None), before, atol=1e-6)


def test_units_of_the_encoders_tokens_are_not_taken_for_those_of_the_decoders() -> None:
    model = small("t5")
    batch = texts(model)
    before = logits(model, **batch)
    encodings = inject(model, {"name": "shaw", "encoding": "undirected-distance"}, where="decoder").position.encodings
    randomised(model.structpe["decoder"].position)
    with pytest.raises(PositionError, match=r"tokens of the encoder are, .* give structpe=\{'encoder'"):
        logits(model, **batch, structpe=given(model))
    with pytest.raises(PositionError, match="structures='path'"):
        generated(model, structpe=given(model))
    written = TokenPositions.of((GRAPH, SMALL), [[NONE, 0, 1, 2, 3], [0, 1]], encodings)
    assert not torch.allclose(logits(model, **batch, structpe={"decoder": written}), before, atol=1e-3)
    nowhere = TokenPositions.of((GRAPH, SMALL), [[NONE] * 5] * 2, encodings)
    assert torch.allclose(logits(model, **batch, structpe={"decoder": nowhere}), before, atol=1e-6)


def test_positions_of_another_batch_are_refused() -> None:
    model = small("bert")
    inject(model, {"name": "t5", "encoding": "undirected-distance"})
    batch = {key: value.repeat(2, 1)[:3] for key, value in texts(model).items()}
    with pytest.raises(PositionError, match="2 structures for a batch of 3 rows"):
        logits(model, **batch, structpe=given(model))


def test_rotations_of_a_position_model_come_on_top_of_the_models_own() -> None:
    # Turning by the place again is turning by twice the place.
    model = small("llama")
    batch = texts(model) | {"attention_mask": torch.ones(2, 8, dtype=torch.int64)}
    twice = logits(model, **batch, position_ids=2 * torch.arange(8)[None])
    base = model.config.rope_parameters["rope_theta"]
    inject(model, {"name": "rotary-half", "base": base}, start="own", structures="path")
    assert torch.allclose(logits(model, **batch), twice, atol=1e-5)


def test_from_pretrained_drops_what_load_restores(tmp_path: Path) -> None:
    model = small("t5")
    injected = inject(model, {"name": "graformer", "encoding": "undirected-distance"}, layers=[1])
    randomised(injected.position)
    batch, structpe = texts(model), given(model)
    before = logits(model, **batch, structpe=structpe)
    model.save_pretrained(tmp_path)
    dropped = hf.T5ForConditionalGeneration.from_pretrained(tmp_path)
    assert not [name for name in dropped.state_dict() if "structpe" in name]
    assert dropped.config._attn_implementation == "sdpa"
    restored = load(hf.T5ForConditionalGeneration, tmp_path).eval()
    assert close(logits(restored, **batch, structpe=structpe), before)
    assert restored.structpe["encoder"].layers == (1,)


@pytest.mark.parametrize("name", only(sorted(CONFIGS), "bart", "gpt2", "t5"))
def test_all_is_saved_in_parts_too_and_again(name: str, tmp_path: Path) -> None:
    model = small(name)
    injected = inject(model, ["shaw", "t5"])
    randomised(injected.position)
    batch, structpe = texts(model), given(model, path(list("abcd")), path(list("ab")))
    before = logits(model, **batch, structpe=structpe)
    first, second = tmp_path / "first", tmp_path / "second"
    model.save_pretrained(first, max_shard_size="20KB")
    assert (first / "model.safetensors.index.json").exists()
    again = load(HEADED[name], first, freeze=True)
    again.save_pretrained(second)
    restored = load(HEADED[name], second).eval()
    assert close(logits(restored, **batch, structpe=structpe), before)
    assert json.loads((second / "config.json").read_text())["structpe"] == model.config.structpe


def test_a_model_of_your_own_is_given_when_it_is_loaded(tmp_path: Path) -> None:
    model = small("bert")
    injected = inject(model, FromAnEntry(dims(model)))
    randomised(injected.position)
    batch, structpe = texts(model), given(model, path(list("abcd")), path(list("ab")))
    before = logits(model, **batch, structpe=structpe)
    model.save_pretrained(tmp_path)
    with pytest.raises(StoreError, match="has no name in the registry; build it"):
        load(hf.BertForMaskedLM, tmp_path)
    restored = load(hf.BertForMaskedLM, tmp_path, {"encoder": FromAnEntry(dims(model))}).eval()
    assert close(logits(restored, **batch, structpe=structpe), before)
    with pytest.raises(StoreError, match="numbers of the position models do not fit"):
        load(hf.BertForMaskedLM, tmp_path, {"encoder": build("t5", dims(model))})


def test_a_folder_without_a_position_model(tmp_path: Path) -> None:
    small("bert").save_pretrained(tmp_path)
    with pytest.raises(StoreError, match="the folder has no position model; save the model"):
        load(hf.BertForMaskedLM, tmp_path)
    with pytest.raises(StoreError, match=r"there is no model\.safetensors"):
        load(hf.BertForMaskedLM, tmp_path / "nowhere")


# Use.


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_gradient_checkpointing_changes_nothing(name: str) -> None:
    structures = path(list("abcd")), path(list("ab"))
    grads = []
    for again in (False, True):
        model = small(name)
        injected = inject(model, ["t5", "shaw"])
        randomised(injected.position)
        structpe = given(model, *structures)
        without_dropout(model)
        if again:
            getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)()
        model.train()
        batch = texts(model)
        # Two passes before the first backward: a layer that is computed again must read its own pass.
        losses = [model(**batch, structpe=each).logits.square().mean() for each in (structpe, None)]
        sum(losses).backward()
        grads.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
    assert grads[0].keys() == grads[1].keys()
    for key, grad in grads[0].items():
        assert torch.allclose(grad, grads[1][key], atol=1e-6, rtol=1e-4), key


@pytest.mark.slow
def test_compiled_models_compute_the_same_in_one_graph() -> None:
    command = [sys.executable, "-m", "tests.adapters.compiling"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name, found in json.loads(done.stdout.splitlines()[-1]).items():
        assert found["difference"] < 1e-5, name
        assert (found["graphs"], found["breaks"]) == (1, []), name


def generated(model: Any, **options: Any) -> torch.Tensor:
    batch = texts(model)
    batch.pop("labels", None)
    if not model.config.is_encoder_decoder:  # a prompt is padded on the left
        batch = {key: value.flip(1) for key, value in batch.items()}
    found: torch.Tensor = model.generate(**batch, max_new_tokens=7, min_new_tokens=7, do_sample=False, **options)
    return found


DECODING = [
    (name, position)
    for name in ("t5", "bart", "llama", "gpt2")
    for position in ("t5-causal", "rotary", "sinusoidal")
    if (name, position) != ("t5", "sinusoidal")  # its heads together are wider than its hidden vectors
]
WRITING = list(product(["t5", "bart", "llama", "gpt2"], ["t5", "shaw", "rotary"], [1, 3]))


@pytest.mark.parametrize("writing", only(WRITING, *WRITING[::5]), ids=str)
def test_generation_with_a_cache_is_generation_without(writing: tuple[str, str, int]) -> None:
    name, position, beams = writing
    model = small(name)
    injected = inject(model, position, start="own")
    with torch.no_grad():
        for parameter in injected.position.parameters():
            parameter.mul_(100)
    units = UNITS if model.config.is_encoder_decoder else [each[::-1] for each in UNITS]
    sequences = [path(list("abcd")), path(list("ab"))]
    left = not model.config.is_encoder_decoder
    structpe = TokenPositions.of(sequences, units, injected.position.encodings, length=8, left=left)
    found = [generated(model, structpe=structpe, use_cache=cache, num_beams=beams) for cache in (True, False)]
    assert torch.equal(*found)


@pytest.mark.parametrize("decoding", only(DECODING, *DECODING[::4], ("llama", "rotary")), ids="-".join)
def test_a_decoder_whose_text_is_a_path_generates_with_a_cache(decoding: tuple[str, str]) -> None:
    name, position = decoding
    model = small(name)
    injected = inject(model, position, where="decoder", start="own", structures="path")
    with torch.no_grad():
        for parameter in injected.position.parameters():
            parameter.mul_(100)
    found = [generated(model, use_cache=cache, num_beams=2) for cache in (True, False)]
    assert torch.equal(*found)


def test_padding_on_the_left_does_not_move_a_path() -> None:
    model = small("llama")
    inject(model, "learned", structures="path", start="own")
    ids = torch.tensor([[5, 6, 7]])
    moved = {"input_ids": torch.tensor([[0, 0, 5, 6, 7]]), "attention_mask": torch.tensor([[0, 0, 1, 1, 1]])}
    alone = logits(model, input_ids=ids, attention_mask=torch.ones_like(ids))
    assert torch.allclose(logits(model, **moved, position_ids=torch.tensor([[0, 0, 0, 1, 2]])), alone, atol=1e-5)


def test_a_cache_of_fixed_size_is_refused() -> None:
    model = small("llama")
    inject(model, "t5", structures="path")
    with pytest.raises(PositionError, match="the cache has a fixed size"):
        generated(model, cache_implementation="static")


def test_generation_without_positions_is_refused() -> None:
    model = small("t5")
    inject(model, {"name": "t5", "encoding": "undirected-distance"})
    with pytest.raises(PositionError, match="the batch has no positions"):
        generated(model)
    assert generated(model, structpe=None).shape == (2, 8)


def test_two_position_models_in_encoder_and_cross_attention() -> None:
    model = small("t5")
    batch = texts(model)
    before = logits(model, **batch)
    inject(model, {"name": "t5", "encoding": "undirected-distance"})
    cross = inject(model, {"name": "shaw", "encoding": "undirected-distance"}, where="cross")
    whole = given(model)
    assert torch.allclose(logits(model, **batch, structpe=whole), before, atol=1e-6)
    randomised(cross.position)
    both = logits(model, **batch, structpe={"encoder": whole, "cross": whole})
    assert torch.equal(logits(model, **batch, structpe=whole), both)
    with pytest.raises(PositionError, match="position model in its cross"):
        logits(model, **batch, structpe={"encoder": whole})


@pytest.mark.parametrize("targets", [None, [[0, 3, -1, 2, 1], [1, -1, 0, 0, 0]]])
def test_in_cross_attention_a_token_stands_at_the_root_or_where_it_is_said(
    targets: list[list[int]] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small("bart")
    handle = inject(model, {"name": "t5-unshared", "encoding": "undirected-distance"}, where="cross", start="own")
    randomised(handle.position)
    structpe, table = given(model), handle.position.get_parameter("table.weight")
    if targets is not None:
        structpe = TokenPositions(
            structpe.positions, structpe.size, structpe.units, structpe.root, torch.tensor(targets), structpe.repeats
        )
    seen = []
    monkeypatch.setattr(transformers, "attend", lambda q, k, v, t, **_: seen.append((t, q, k)) or attend(q, k, v, t))
    logits(model, **texts(model), structpe=structpe)
    crossing = [each for each in seen if each[1].shape[2] != each[2].shape[2]]
    assert len(crossing) == LAYERS
    distances = ([[0, 1, 1, 2], [1, 0, 2, 3], [1, 2, 0, 1], [2, 3, 1, 0]], [[0, 1], [1, 0]])
    stands = [[0] * 5, [0] * 5] if targets is None else targets
    for layer, (terms, q, k) in enumerate(crossing):
        expected = torch.zeros(2, HEADS, 5, 8)
        for row, (queries, units, between) in enumerate(zip(stands, UNITS, distances, strict=True)):
            for i, unit in enumerate(queries):
                for j, other in enumerate(units):
                    if unit >= 0 and other >= 0:
                        distance = between[unit][other]
                        expected[row, :, i, j] = table[layer, 16 + distance if distance else 0]
        found = additive(replace(terms, scale=1.0), q, k.shape[2])
        there = texts(model)["attention_mask"].bool()[:, None, None].expand_as(found)
        assert torch.allclose(found[there], expected[there], atol=1e-6)
        assert (found[~there] == -torch.inf).all()


@pytest.mark.parametrize("name", ["bert", "t5", "llama"])
def test_the_weights_of_attention_are_those_of_the_checkpoint_at_first(name: str) -> None:
    model, eager = small(name), small(name)
    eager.set_attn_implementation("eager")
    position = inject(model, {"name": "t5", "encoding": "undirected-distance"}).position
    batch, structpe = texts(model), given(model)
    key = "encoder_attentions" if name == "t5" else "attentions"
    mine = model(**batch, structpe=structpe, output_attentions=True)[key]
    for one, other in zip(mine, eager(**batch, output_attentions=True)[key], strict=True):
        assert torch.allclose(one[0], other[0], atol=1e-6)
    randomised(position)
    changed = model(**batch, structpe=structpe, output_attentions=True)[key]
    assert not torch.allclose(changed[0], mine[0])
    assert torch.allclose(changed[0].sum(-1), torch.ones(()), atol=1e-5)


def test_positions_go_to_the_device_of_the_model_once_for_a_pass() -> None:
    model = small("bert")
    injected = inject(model, {"name": "t5", "encoding": "undirected-distance"}).injected
    structpe = given(model)
    passing, like = Pass(structpe, {}, keeps=True), torch.zeros(2, 1, device="meta")
    moved = passing.positions(injected, 8, like)
    assert moved is not None
    assert moved.units.device.type == "meta"
    assert passing.positions(injected, 8, like) is moved
    assert passing.positions(injected, 8, torch.zeros(2, 1)) is structpe


def test_freezing_trains_positions_and_adapters_only() -> None:
    model = small("t5")
    model.encoder.block[0].layer[0].SelfAttention.q.lora_A = torch.nn.Parameter(torch.zeros(2, 2))
    inject(model, {"name": "t5", "encoding": "undirected-distance"}, freeze=True)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained == {"structpe.encoder.position.table.weight", "encoder.block.0.layer.0.SelfAttention.q.lora_A"}


def test_a_copy_and_a_pickled_model_are_on_their_own() -> None:
    model = small("llama")
    injected = inject(model, {"name": "t5", "encoding": "undirected-distance"})
    batch, structpe = texts(model), given(model)
    before = logits(model, **batch, structpe=structpe)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        randomised(other.structpe["decoder"].position)
        assert not torch.allclose(logits(other, **batch, structpe=structpe), before)
        assert torch.equal(logits(model, **batch, structpe=structpe), before)
        ids = other.generate(batch["input_ids"], max_new_tokens=2, structpe=structpe)
        assert ids.shape[1] > 8
    assert injected.model is model


def test_ejected_it_is_the_model_of_before() -> None:
    model = small("bart")
    batch, names = texts(model), set(model.state_dict())
    before = logits(model, **batch)
    randomised(inject(model, {"name": "t5", "encoding": "undirected-distance"}).position)
    eject(model)
    assert set(model.state_dict()) == names
    assert torch.equal(logits(model, **batch), before)
    assert inject(model, {"name": "t5", "encoding": "undirected-distance"}).injected.where == "encoder"


# Errors.


@together(
    ("name", "position", "options", "message"),
    [
        ("bert", "t5", {"where": "cross"}, "BertForMaskedLM has no attention 'cross' to enter; it has encoder"),
        ("bert", "t5", {"layers": [2]}, "there is no layer 2; the encoder has 2, 0..1"),
        ("bert", "t5", {"layers": [1, 1]}, "give one or more, each once"),
        ("bert", "alibi", {}, "'alibi' has no numbers to learn.* use start='own'"),
        (
            "bert",
            "deberta-v2",
            {"start": "own"},
            "has its own attention, which the encoder of Bert.* cannot take",
        ),
        (
            "t5",
            "learned",
            {"where": "cross"},
            "the vectors that enter the first layer, which the cross of T5.* cannot take",
        ),
        ("t5", "t5", {"where": "cross", "instead": True}, "the cross of T5.* has no positions of its own"),
        ("gpt2", "t5", {"layers": [0], "instead": True}, "learned positions of GPT2.* enter before all layers"),
        ("bert", "t5", {"start": "half"}, "start is 'half'; it must be one of zero, own"),
        ("bert", "deberta", {}, "acts by scale changes a pretrained model from the beginning.* use start='own'"),
        ("bert", "mixed-rotary", {}, "acts by maps changes a pretrained model.* use start='own'"),
        ("llama", "wire", {}, "acts by maps changes a pretrained model.* use start='own'"),
        ("bert", "gkat", {}, "use start='own'"),
        ("t5", "rotary", {"where": "cross", "start": "own"}, "cannot enter cross-attention"),
        ("t5", "learned", {"start": "own", "structures": "path"}, "have 32 numbers and all heads together 64"),
    ],
)
def test_what_cannot_be_is_said(name: str, position: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PositionError, match=message):
        inject(small(name), position, **options)


def test_sizes_and_second_position_models_are_checked() -> None:
    model = small("t5")
    assert dims(model) == Dims(width=64, heads=HEADS, layers=LAYERS)
    with pytest.raises(PositionError, match=r"was built for .*width=32.*, and the encoder needs .*width=64"):
        inject(model, build("t5", Dims(32, 4, 2)))
    inject(model, "t5")
    with pytest.raises(PositionError, match="the encoder has a position model already; give both as one"):
        inject(model, "shaw")
    with pytest.raises(PositionError, match="the hidden vectors have 32 numbers and all heads together 64"):
        inject(model, "learned", where="decoder", start="own", structures="path")
    assert set(model.structpe) == {"encoder"}


def test_an_older_version_of_transformers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.__version__", "4.57.6")  # the module that is imported now; it replaces itself
    with pytest.raises(
        PositionError, match=r"transformers 4\.57\.6 is installed; .* need version 5, .*'transformers>=5'"
    ):
        inject(small("bert"), "t5")


def test_an_unknown_family() -> None:
    model = hf.XLNetModel(hf.XLNetConfig(d_model=8, n_head=2, n_layer=1, d_inner=8, vocab_size=9))
    with pytest.raises(PositionError, match=r"'xlnet' is not known; known are bert, .*FAMILIES"):
        inject(model, "t5")


def test_what_is_refused_leaves_the_model_as_it_was() -> None:
    model = small("t5")
    batch = texts(model)
    before = logits(model, **batch)
    for position, where in (("rotary", "cross"), ("rotary", "encoder"), ("learned", "encoder")):
        with pytest.raises(PositionError):
            inject(model, position, where=where)  # type: ignore[arg-type]
    assert not hasattr(model, "structpe")
    assert getattr(model.config, "structpe", None) is None
    assert model.config._attn_implementation == "sdpa"
    assert torch.equal(logits(model, **batch), before)


@pytest.mark.parametrize("name", ["sinks", "score_mod"])
def test_an_attention_that_asks_for_more_than_is_computed_is_refused(name: str) -> None:
    q, module = torch.randn(1, 2, 3, 4), torch.nn.Module()
    harmless = {"sliding_window": 3, "position_ids": torch.arange(3), "use_cache": False, name: None}
    assert attention(module, q, q, q, None, **harmless)[0].shape == (1, 3, 2, 4)
    with pytest.raises(PositionError, match=rf"attention of Module is asked for {name}, which .* does not compute"):
        attention(module, q, q, q, None, **{name: torch.ones(2)})
