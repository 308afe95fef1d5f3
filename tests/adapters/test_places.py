"""From units to tokens: each token keeps its own vector, has its unit's place, and without a unit is left as it is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf

from structpe.adapters import dims, inject
from structpe.adapters._injection import constant
from structpe.adapters._tokens import NONE, TokenUnits
from structpe.adapters.transformers import TokenPositions
from structpe.attention import attend
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Site, build
from structpe.positions.batch import encode
from structpe.structure import path
from structpe.terms import Factor, Lookup, Terms
from tests.adapters.models import HEADS, LAYERS, logits, small, texts
from tests.adapters.test_transformers import check_advice
from tests.positions.cases import NAMES, TREES, made
from tests.representatives import only

PIECES = [NONE, 0, 1, 1, NONE, 2, 3, 3, 3, 4, 0]
"""Words of one and of several pieces, a word that comes again, and tokens without a unit."""
QUICK = ("dwivedi", "tpe", "spr", "sinusoidal", "learned", "rotary-half", "shaw", "tupe-a", "transformer-xl")
EVERY = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES]


class ByHand:
    """BERT written out, in which each token in turn is alone in its unit, and all units have its vector."""

    def __init__(self, model: Any, position: PositionModel, units: list[int]) -> None:
        self.model, self.position, self.units = model, position, units

    def __call__(self, ids: torch.Tensor, structure: Any) -> torch.Tensor:
        bert, position = self.model.bert, self.position
        prepared = position.prepare(encode([structure], position.encodings).to(ids.device, torch.float64))
        x = bert.embeddings(ids)
        for number, layer in enumerate(bert.encoder.layer):
            own, site = layer.attention.self, Site(number)
            x = self._each(x, lambda y, s=site: self._changed(y, prepared, s), structure.unit_count)
            q, k, v = (p(x).view(*x.shape[:2], HEADS, -1).transpose(1, 2) for p in (own.query, own.key, own.value))
            terms = position.terms(prepared, site)
            for change in terms.maps:
                q = self._each(q, lambda y, c=change: c(y, y)[0], structure.unit_count)
                k = self._each(k, lambda y, c=change: c(y, y)[1], structure.unit_count)
            rest = Terms(**{name: getattr(terms, name) for name in ("bias", "gate", "mask", "key", "query", "product")})
            rest += Terms(factors=terms.factors, value=terms.value, act=terms.act, scale=terms.scale, pairs=terms.pairs)
            place = torch.tensor([self.units])
            mixed = attend(q, k, v, TokenUnits(place, place, structure.unit_count, 1).terms(rest), "dense")
            x = layer.attention.output(mixed.transpose(1, 2).flatten(2), x)
            x = layer.output(layer.intermediate(x), x)
        found: torch.Tensor = self.model.cls(x)
        return found

    def _changed(self, x: torch.Tensor, prepared: Any, site: Site) -> torch.Tensor:
        x = self.position.inputs(x, prepared) if site.layer == 0 else x
        return self.position.layer(x, prepared, site)

    def _each(self, x: torch.Tensor, change: Any, count: int) -> torch.Tensor:
        rows = []
        for i, unit in enumerate(self.units):
            alone = x[..., i : i + 1, :]
            rows.append(
                alone if unit == NONE else change(alone.expand(*x.shape[:-2], count, -1))[..., unit : unit + 1, :]
            )
        return torch.cat(rows, dim=-2)


@pytest.mark.parametrize("start", ["zero", "own"])
@pytest.mark.parametrize("name", EVERY)
def test_tokens_of_one_unit_have_its_place_and_each_its_own_vector(name: str, start: Any) -> None:
    model = small("bert").double()
    ids = texts(model, len(PIECES))["input_ids"][:1]
    with torch.no_grad():
        before = model(input_ids=ids).logits
        try:
            position = inject(model, made(name, Dims(32, HEADS, LAYERS)), start=start).position
            structpe = TokenPositions.of(TREES[1:2], [PIECES], position.encodings)
            found = model(input_ids=ids, structpe=structpe).logits
        except PositionError as error:
            if "let each token be a unit of its own" not in str(error):
                check_advice(error)
            return
        expected = before if start == "zero" else ByHand(model, position, PIECES)(ids, TREES[1])
    assert structpe.repeats == 3
    assert torch.allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("host", "where"),
    [("t5", "encoder"), ("bart", "encoder"), ("gpt2", "decoder"), ("llama", "decoder"), ("modernbert", "encoder")],
)
def test_every_family_keeps_the_vectors_of_pieces(host: str, where: Any) -> None:
    for config in ("dwivedi", "rwse", "shaw"):
        model = small(host)
        batch = texts(model, len(PIECES))
        before = logits(model, **batch)
        made_for = {"name": config, **({"encoding": "undirected-distance"} if config == "shaw" else {})}
        if host == "t5" and config != "shaw":
            with pytest.raises(PositionError, match="the hidden vectors have 32 numbers and all heads together 64"):
                inject(model, made_for, where=where)
            continue
        position = inject(model, made_for, where=where).position
        structpe = TokenPositions.of([path(list("abcde"))] * 2, [PIECES] * 2, position.encodings)
        assert torch.allclose(logits(model, **batch, structpe=structpe), before, atol=2e-5), config


def test_a_model_that_mixes_units_refuses_several_tokens_of_one() -> None:
    model = small("bert")
    position = inject(model, "rnn", start="own").position
    ids = texts(model, len(PIECES))["input_ids"][:1]
    model(input_ids=ids, structpe=TokenPositions.of([TREES[1]], [[0, 1, 2, NONE, 3]], position.encodings, length=11))
    with pytest.raises(PositionError, match=r"'rnn' changes the vector of a unit by those of others.*unit of its own"):
        model(input_ids=ids, structpe=TokenPositions.of([TREES[1]], [PIECES], position.encodings))


# What has no unit is left as it is, whatever the term.


def of_units(field: str) -> Terms:
    torch.manual_seed(0)
    lookup = Lookup(torch.randn(4, 2, 3), torch.arange(4)[None], torch.randint(0, 4, (1, 3, 3)))
    scalars = Lookup(torch.randn(4, 2), torch.arange(4)[None], lookup.index)
    if field == "maps":
        return Terms(maps=(lambda q, k: (q * 2 + 1, k * 3 + 1),))
    if field == "factors":
        return Terms(factors=(Factor(torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)),))
    if field == "mask":
        return Terms(mask=(torch.zeros(1, 1, 3, 3, dtype=torch.bool),))
    return Terms(**{field: (scalars if field in ("bias", "gate") else lookup,)})


@pytest.mark.parametrize("field", ["maps", "factors", "bias", "gate", "mask", "key", "query", "product", "value"])
def test_pairs_without_a_unit_on_both_sides_are_left_as_they_are(field: str) -> None:
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 1, 2, 5, 3).unbind()
    queries, keys = torch.tensor([[0, NONE, 1, 2, NONE]]), torch.tensor([[NONE, 0, NONE, 2, 2]])
    terms = TokenUnits(queries, keys, 3, 1).terms(of_units(field))
    plain = attend(q, k, v, Terms(), "dense")
    # A query without a unit is as it was: all of its pairs are. With a map its keys may still have one.
    if field != "maps":
        assert torch.allclose(attend(q, k, v, terms, "dense")[:, :, [1, 4]], plain[:, :, [1, 4]], atol=1e-6)
    some = torch.tensor([0, 2])  # keys without a unit
    alone = TokenUnits(queries, keys[:, some], 3, 1).terms(of_units(field))
    found = attend(q, k[:, :, some], v[:, :, some], alone, "dense")
    untouched = [1, 4] if field == "maps" else [0, 1, 2, 3, 4]
    expected = attend(q, k[:, :, some], v[:, :, some], Terms(), "dense")
    assert torch.allclose(found[:, :, untouched], expected[:, :, untouched], atol=1e-6)
    assert not torch.allclose(attend(q, k, v, terms, "dense")[:, :, [0, 2, 3]], plain[:, :, [0, 2, 3]], atol=1e-3)


# Models that rotate queries and keys themselves.


def qwen2() -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "intermediate_size": 37}
    model = hf.Qwen2ForCausalLM(hf.Qwen2Config(**sizes, vocab_size=60, num_key_value_heads=2, pad_token_id=0))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4 if parameter.ndim == 2 else 1)
    return model.eval()


HOSTS = {"llama": lambda: small("llama"), "qwen2": qwen2, "modernbert": lambda: small("modernbert")}
ROTATED = ("shaw", "transformer-xl", "rotary", "deberta", "xpos", "da-transformer")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", only(NAMES, *ROTATED))
def test_padding_on_the_left_changes_nothing_in_a_model_that_rotates(host: str, name: str) -> None:
    model = HOSTS[host]().double()
    try:
        position = inject(model, made(name, dims(model)), start="own").position
        ids, units = texts(model, 7)["input_ids"][:1], [*range(TREES[1].unit_count)]
        outs = []
        for padding in (0, 5):
            structpe = TokenPositions.of([TREES[1]], [[NONE] * padding + units], position.encodings, length=padding + 7)
            whole = torch.cat([ids.new_zeros(1, padding), ids], dim=1)
            mask = torch.cat([ids.new_zeros(1, padding), torch.ones_like(ids)], dim=1)
            with torch.no_grad():
                outs.append(model(input_ids=whole, attention_mask=mask, structpe=structpe).logits[:, padding:])
    except PositionError as error:
        check_advice(error)
        return
    assert torch.allclose(*outs, atol=1e-5)  # the host's angles are float32


def test_vectors_of_pairs_meet_queries_as_they_were_before_the_rotation() -> None:
    # Without rotation by angles of 0, Llama with Shaw's vectors is as the equation says.
    still, turning = small("llama").double(), small("llama").double()
    outs = []
    for model in (still, turning):
        position = inject(model, "shaw", start="own", layers=[0]).position
        with torch.no_grad():
            for parameter in position.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
        seen: list[Any] = []
        model.model.layers[0].self_attn.q_proj.register_forward_hook(lambda _, __, out, seen=seen: seen.append(out))
        structpe = TokenPositions.of([path(list("abcd"))], [[0, 1, 2, 3]], position.encodings)
        at = torch.zeros(1, 4, dtype=torch.int64) if model is still else torch.arange(4)[None]
        with torch.no_grad():
            outs.append(model(input_ids=torch.tensor([[5, 6, 7, 8]]), position_ids=at, structpe=structpe).logits)
            outs.append(model(input_ids=torch.tensor([[5, 6, 7, 8]]), position_ids=at, structpe=None).logits)
    # What the vectors add to the first token, which sees itself alone, is the same under every rotation.
    assert torch.allclose(outs[0][:, 0] - outs[1][:, 0], outs[2][:, 0] - outs[3][:, 0], atol=1e-9)


@pytest.mark.parametrize("name", ["shaw", "transformer-xl", "rotary"])
def test_steps_with_a_cache_of_ones_own_meet_keys_as_they_were(name: str) -> None:
    model = small("llama").double()
    inject(model, made(name, dims(model)), start="own", structures="path")
    ids = texts(model, 7)["input_ids"][:1]
    with torch.no_grad():
        whole = model(input_ids=ids).logits
        cache, steps = hf.DynamicCache(config=model.config), []
        for part in ids.split([3, 1, 1, 2], dim=1):
            steps.append(model(input_ids=part, past_key_values=cache, use_cache=True).logits)
    assert torch.allclose(torch.cat(steps, dim=1), whole, atol=1e-6)
    with torch.no_grad():
        filled = small("llama").double()(input_ids=ids[:, :3], use_cache=True).past_key_values
    if name != "shaw":  # which meets queries only, and needs nothing of keys
        with torch.no_grad(), pytest.raises(PositionError, match="begin with an empty cache"):
            model(input_ids=ids[:, 3:], past_key_values=filled, use_cache=True)


# Texts that are paths.


@pytest.mark.parametrize("name", ["alibi-causal", "rotary", "sinusoidal", "learned", "shaw", "t5"])
def test_several_texts_in_a_row_are_those_texts(name: str) -> None:
    model = small("llama").double()
    inject(model, build(name, dims(model)), structures="path", start="own")
    a, b = torch.tensor([[4, 5, 6]]), torch.tensor([[7, 8, 9, 10]])
    ids = torch.tensor([[0, 1, 2, 0, 1, 2, 3]])
    with torch.no_grad():
        alone = torch.cat([model(input_ids=each, use_cache=False).logits for each in (a, b)], dim=1)
        packed = model(input_ids=torch.cat([a, b], dim=1), position_ids=ids, use_cache=False).logits
        by_place = model(torch.cat([a, b], dim=1), None, ids, use_cache=False).logits  # without names
    assert torch.allclose(packed, alone, atol=1e-6)
    assert torch.equal(by_place, packed)


def test_places_of_tokens_in_a_cache_are_known_or_asked_for() -> None:
    model = small("llama").double()
    inject(model, "learned", structures="path", start="own")
    ids, far = texts(model, 6)["input_ids"][:1], torch.tensor([[0, 1, 2, 7, 8, 9]])
    with torch.no_grad():
        cache = model(input_ids=ids[:, :4], use_cache=True).past_key_values
        step = model(input_ids=ids[:, 4:], past_key_values=cache, position_ids=torch.tensor([[4, 5]]))
        assert torch.allclose(step.logits, model(input_ids=ids).logits[:, 4:], atol=1e-9)
        cache = model(input_ids=ids[:, :4], position_ids=far[:, :4], use_cache=True).past_key_values
        with pytest.raises(PositionError, match=r"say where the new tokens are, and not those in the cache.*call gen"):
            model(input_ids=ids[:, 4:], past_key_values=cache, position_ids=far[:, 4:])
        assert not torch.allclose(model(input_ids=ids, position_ids=far).logits, model(input_ids=ids).logits)
        with pytest.raises(PositionError, match="are negative; places begin at 0"):
            model(input_ids=ids, position_ids=far - 1)


def test_position_ids_of_roberta_begin_behind_the_id_of_padding() -> None:
    model = small("roberta").double()
    inject(model, "learned", structures="path", start="own")
    batch = {"input_ids": texts(model)["input_ids"], "attention_mask": torch.ones(2, 8, dtype=torch.int64)}
    given = torch.arange(8)[None] + model.config.pad_token_id + 1
    assert torch.allclose(logits(model, **batch), logits(model, **batch, position_ids=given), atol=1e-9)


@pytest.mark.slow
def test_a_model_whose_texts_are_paths_is_compiled() -> None:
    torch._dynamo.reset()
    assert vars(constant(lambda: 0)) == vars(torch.compiler.assume_constant_result(lambda: 0))
    model = small("llama")
    injected = inject(model, "alibi-causal", structures="path", start="own").injected
    # Not the whole model, as tests check the shapes of tensors, and no such check is traced.
    paths, encoding = injected.paths, injected.paths.encodings[0]
    compiled = torch.compile(lambda x: x + paths.of(len(x))[encoding].float().sum(), backend="eager", fullgraph=True)
    for length in (3, 5, 4):
        found = encode([path([""] * length)], paths.encodings)[encoding]
        assert isinstance(found, torch.Tensor)
        assert torch.equal(compiled(torch.zeros(length)), torch.zeros(length) + found.float().sum())
