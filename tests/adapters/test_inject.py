"""One law for all libraries: what a model computes at first, after injection, and after it; and what is refused."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import structpe
from structpe.adapters import dims
from structpe.adapters.transformers import TokenPositions, load, rotary_from, take_t5
from structpe.attention import attend
from structpe.encodings import Window
from structpe.errors import PositionError, StructPEError
from structpe.positions import Dims, Site, Sources
from structpe.structure import path
from structpe.terms import Terms
from tests.adapters.hosts import HOSTS, PRESENT, STRUCTURES, WAYS, WITHOUT, drawn, encoder, seeded, units
from tests.adapters.models import logits, small, texts
from tests.positions.cases import NAMES, TREES, encoded, made
from tests.positions.cases import present as there
from tests.representatives import fewer, only

EVERY = [(host, way) for host in HOSTS for way in WAYS]
QUICK = [each for number, each in enumerate(EVERY) if number % len(WAYS) == (number // len(WAYS)) % len(WAYS)]
"""Each library with one way, and each way with several libraries."""
REFUSES = re.compile(
    r"'[\w-]+' (has no numbers to learn|changes the vectors|has its own)|acts by .*(additive mask|start at zero)"
    r"|hidden vectors have 32 numbers"
)


def entered(host: str, way: str, **options: Any) -> tuple[Any, Any, Tensor]:
    """A model, the handle of a position model in it, and what it computed before; skips what is refused by name."""
    model = HOSTS[host].make()
    before = HOSTS[host].call(model, WITHOUT)
    try:
        handle = structpe.inject(model, WAYS[way], **options)
    except StructPEError as error:
        assert REFUSES.search(str(error)), error  # noqa: PT017
        assert_as_before(host, model, before)
        pytest.skip(f"refused: {error}")
    return model, handle, before


def assert_as_before(host: str, model: Any, before: Tensor) -> None:
    """Nothing that an injection has changed is left."""
    fresh = HOSTS[host].make()
    assert torch.equal(HOSTS[host].call(model, WITHOUT), before)
    for one, other in zip(model.modules(), fresh.modules(), strict=True):
        assert vars(one).keys() == vars(other).keys(), type(one)
        assert not one._forward_pre_hooks
        assert not one._forward_hooks
    assert model.state_dict().keys() == fresh.state_dict().keys()
    assert all(torch.equal(each, other) for each, other in zip(model.parameters(), fresh.parameters(), strict=True))
    assert all(each.requires_grad for each in model.parameters())
    config = getattr(model, "config", None)
    assert config is None or ("structpe" not in vars(config) and config._attn_implementation == "sdpa")


def close(found: Tensor, expected: Tensor) -> bool:
    return bool((found - expected).abs().max() <= 1e-6 * max(1.0, float(expected.abs().max())))


@pytest.mark.parametrize("entering", only(EVERY, *QUICK), ids=" - ".join)
def test_at_first_it_is_the_host_then_it_learns_and_ejected_it_is_the_host_again(entering: tuple[str, str]) -> None:
    host, way = entering
    call = HOSTS[host].call
    with torch.no_grad():
        model, handle, before = entered(host, way)
        assert close(call(model, STRUCTURES), before)
        drawn(handle.position)
        moved = call(model, STRUCTURES)
        assert not torch.allclose(moved, before, atol=1e-4)
        other = copy.deepcopy(model)
        assert torch.equal(call(other, STRUCTURES), moved)
        again = HOSTS[host].make()
        structpe.inject(again, WAYS[way])
        again.load_state_dict(model.state_dict())
        assert close(call(again, STRUCTURES), moved)
        for each in (model, other):
            structpe.eject(each)
            assert_as_before(host, each, before)


@pytest.mark.parametrize("host", HOSTS)
def test_a_pass_that_fails_leaves_nothing_behind(host: str) -> None:
    call = HOSTS[host].call
    model = HOSTS[host].make()
    with torch.no_grad():
        before = call(model, WITHOUT)
        handle = structpe.inject(model, WAYS["bias"], start="own", freeze=True)
        trained = {name for name, each in model.named_parameters() if each.requires_grad}
        assert trained == {f"structpe.{handle.injected.where}.position.table.weight"}
        drawn(handle.position)
        found = call(model, STRUCTURES)

        def fail(*_: Any) -> None:
            raise ZeroDivisionError

        last = [each for each in model.modules() if type(each).__name__.endswith("Linear")][-1]
        hook = last.register_forward_hook(fail)
        if last._forward_hooks and not isinstance(model, nn.MultiheadAttention):  # its own Linear is not called
            with pytest.raises(ZeroDivisionError):
                call(model, STRUCTURES)
        hook.remove()
        assert torch.equal(call(model, STRUCTURES), found)
        if HOSTS[host].asks:
            with pytest.raises(PositionError, match=r"has a position model in its .*, and the batch has no positions"):
                call(model, WITHOUT)
            with handle.reading(STRUCTURES):
                assert torch.equal(call(model, WITHOUT), found)
            assert torch.equal(call(model, None), before) or close(call(model, None), before)
        structpe.eject(model)
        assert_as_before(host, model, before)


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_wrong_is_said_with_the_same_words(host: str) -> None:
    model = HOSTS[host].make()
    needed, place = dims(model), "decoder" if host in ("llama", "gpt2") else "encoder"
    layers = needed.layers
    other = structpe.build("t5", Dims(needed.width * 2, needed.heads, layers))
    name = type(model).__name__
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ("t5", {"where": "nowhere"}, f"{name} has no attention 'nowhere' to enter; it has {place}"),
        ("t5", {"layers": [layers]}, f"there is no layer {layers}; the {place} has {layers}, 0..{layers - 1}"),
        ("t5", {"layers": [0, 0]}, "layers are [0, 0]; give one or more, each once"),
        ("t5", {"start": "half"}, "start is 'half'; it must be one of zero, own"),
        ("t5", {"structures": "some"}, "structures is 'some'; it must be one of given, path"),
        (other, {}, f"position model 't5' was built for {other.dims}, and the {place} needs {needed}; build it"),
        ("alibi", {}, "position model 'alibi' has no numbers to learn, and would never change anything"),
        ("t6", {}, "there is no position model named 't6'"),
        ("grit", {}, "position model 'grit' "),
    ]
    if not HOSTS[host].own:
        wrong.append(("t5", {"instead": True}, f"the {place} of {name} has no positions of its own to replace"))
    for position, options, text in wrong:
        with pytest.raises(PositionError, match=re.escape(text)):
            structpe.inject(model, position, **options)
    assert "structpe" not in model._modules
    structpe.inject(model, "t5")
    with pytest.raises(PositionError, match=f"the {place} has a position model already; give both as one"):
        structpe.inject(model, "t5")
    if HOSTS[host].asks and host != "TransformerConv":
        with pytest.raises(PositionError, match="the positions are of 5 units, and there are 4 tokens"):
            HOSTS[host].call(model, [path(list("abcde"))] * 2)


def test_a_handle_says_what_is_where() -> None:
    model = small("bert")
    handle = structpe.inject(model, [WAYS["bias"], "sinusoidal"], layers=[1], start="own")
    assert repr(handle) == "Handle(t5 + sinusoidal in BertForMaskedLM: encoder, layers 1; start='own')"
    llama = small("llama")
    handle = structpe.inject(llama, "rotary-half", instead=True)
    assert repr(handle) == (
        "Handle(rotary-half in LlamaForCausalLM: decoder, layers 0, 1; start='own', instead of its own)"
    )


# PyTorch's encoder takes every position model.


@pytest.mark.parametrize("name", fewer(NAMES))
def test_an_encoder_of_pytorch_takes_every_position_model(name: str) -> None:
    whole = seeded(lambda: encoder(dropout=0.0))().double()
    options = {"encoding": Window(1)} if name == "sliding-window" else {}  # as wide as the trees else
    position, x = made(name, Dims(8, 2, 2), **options), torch.randn(3, 10, 8, dtype=torch.float64)
    structpe.inject(whole, position, start="own", instead=position.own_attention)
    positions, mask = encoded(position, TREES), there(TREES)
    with torch.no_grad():
        found, plain = (whole(x, structpe=each, src_key_padding_mask=~mask[:, 0, 0]) for each in (positions, None))
        prepared = position.prepare(positions)
        expected = position.inputs(x, prepared)
        for number, layer in enumerate(whole.layers):
            site = Site(number)
            expected = position.layer(expected, prepared, site)
            terms = position.terms(prepared, site) + Terms(mask=(mask,))
            if position.own_attention:
                mixed, prepared = position.attend(expected, prepared, site, terms)
                expected = layer.norm1(expected + mixed)
                expected = layer.norm2(expected + layer.linear2(layer.linear1(expected).relu()))
                continue
            sources = position.sources(Sources(expected, expected, expected), prepared, site)
            expected = of_sources(layer, expected, sources, terms)
    units = mask[:, 0, 0]
    assert torch.allclose(found[units], expected[units], atol=1e-9)
    assert name == "nope" or not torch.allclose(found[units], plain[units], atol=1e-6)


def of_sources(layer: Any, x: Tensor, sources: Sources, terms: Terms) -> Tensor:
    """A layer of PyTorch written out, norms last."""
    own = layer.self_attn
    weights, biases = own.in_proj_weight.chunk(3), own.in_proj_bias.chunk(3)
    given = (sources.query, sources.key, sources.value)
    q, k, v = (
        (each @ w.T + b).unflatten(-1, (2, -1)).transpose(1, 2)
        for each, w, b in zip(given, weights, biases, strict=True)
    )
    mixed = own.out_proj(attend(q, k, v, terms, "dense").transpose(1, 2).flatten(2))
    x = layer.norm1(x + mixed)
    out: Tensor = layer.norm2(x + layer.linear2(layer.linear1(x).relu()))
    return out


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_rotary_in_an_encoder_of_pytorch_is_attention_by_hand(norm_first: bool, batch_first: bool) -> None:
    whole = seeded(lambda: encoder(norm_first=norm_first, batch_first=batch_first))().double()
    structpe.inject(whole, "rotary", start="own", structures="path")
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    allowed = torch.ones(5, 5, dtype=torch.bool).tril()
    angle = torch.arange(5)[:, None] / 10000.0 ** (torch.arange(2) / 2)

    def turned(y: Tensor) -> Tensor:
        even, odd = y[..., ::2], y[..., 1::2]
        pairs = even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()
        return torch.stack(pairs, dim=-1).flatten(-2)

    def attended(own: Any, y: Tensor) -> Tensor:
        q, k, v = (y @ own.in_proj_weight.T + own.in_proj_bias).view(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        score = turned(q) @ turned(k).transpose(-1, -2) / 2
        mixed = score.masked_fill(~allowed, -torch.inf).softmax(-1) @ v
        out: Tensor = own.out_proj(mixed.transpose(1, 2).flatten(2))
        return out

    expected = x
    for layer in whole.layers:
        fed = lambda y, own=layer: own.linear2(own.linear1(y).relu())  # noqa: E731
        if norm_first:
            expected = expected + attended(layer.self_attn, layer.norm1(expected))
            expected = expected + fed(layer.norm2(expected))
        else:
            expected = layer.norm1(expected + attended(layer.self_attn, expected))
            expected = layer.norm2(expected + fed(expected))
    for mask in (~allowed, torch.zeros(5, 5, dtype=torch.float64).masked_fill(~allowed, -torch.inf)):
        with torch.no_grad():
            found = whole(x if batch_first else x.transpose(0, 1), mask=mask)
        assert torch.allclose(found if batch_first else found.transpose(0, 1), expected, atol=1e-9)


def test_dropout_of_attention_stays_that_of_the_encoder() -> None:
    whole = seeded(lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True))().train()
    whole.self_attn.dropout = 1.0 - 1e-7  # nearly all is dropped
    structpe.inject(whole, "shaw", start="own", structures="path")
    value = whole.self_attn.out_proj.bias.expand(2, 4, 8)
    mixed, _ = whole.self_attn(units(), units(), units(), need_weights=False)
    assert torch.allclose(mixed, value, atol=1e-5)
    whole.eval()
    assert not torch.allclose(whole.self_attn(units(), units(), units())[0], value, atol=1e-2)


def test_weights_of_attention_are_given_if_asked_for() -> None:
    attention = HOSTS["attention"].make()
    x = units()
    before = attention(x, x, x, key_padding_mask=~PRESENT)[1]
    structpe.inject(attention, WAYS["bias"])
    found = attention(x, x, x, key_padding_mask=~PRESENT, structpe=STRUCTURES)[1]
    assert torch.allclose(found, before, atol=1e-6)
    heads = attention(x, x, x, average_attn_weights=False, structpe=STRUCTURES)[1]
    assert heads.shape == (2, 2, 4, 4)


# What a host has of its own can be replaced.


def test_turning_by_depth_in_a_llama_is_its_own_turning_by_these_places() -> None:
    model, depths = small("llama"), torch.tensor([[2, 1, 0, 2, 1]])
    parse = structpe.tree(list("abcde"), [2, 3, 0, 5, 3])
    batch = {"input_ids": torch.tensor([[10, 11, 12, 13, 14]]), "attention_mask": torch.ones(1, 5, dtype=torch.long)}
    with torch.no_grad():
        plain, expected = model(**batch).logits, model(**batch, position_ids=depths).logits
        structpe.inject(model, {**rotary_from(model.config), "encoding": "depth"}, instead=True)
        assert close(model(**batch, structpe=[parse]).logits, expected)
        assert not torch.allclose(plain, expected, atol=1e-3)
        structpe.eject(model)
        assert torch.equal(model(**batch).logits, plain)


@pytest.mark.parametrize("host", ["llama", "t5"])
def test_the_same_in_place_of_its_own_is_the_host(host: str) -> None:
    model = small(host)
    batch = texts(model)
    if host == "llama":
        position: Any = rotary_from(model.config)
    else:
        position = take_t5(structpe.build("t5", dims(model)), model)
    with torch.no_grad():
        before = logits(model, **batch)
        structpe.inject(model, position, instead=True, structures="path")
        assert torch.allclose(logits(model, **batch), before, atol=2e-6)


@pytest.mark.parametrize("host", ["bert", "bart", "gpt2", "vit"])
def test_learned_positions_are_taken_out(host: str) -> None:
    model, plain = HOSTS[host].make(), HOSTS[host].make()
    structpe.inject(model, "alibi" if host != "vit" else "t5", instead=True, start="own", layers=None)
    with torch.no_grad():
        own = [
            each
            for name, each in plain.named_parameters()
            if re.search("position_embeddings|embed_positions|wpe|pos_embed", name) and "decoder.embed" not in name
        ]
        for each in own:
            each.zero_()
        for each in model.structpe.parameters():
            each.zero_()
        structures = None if host != "vit" else WITHOUT
        assert close(HOSTS[host].call(model, structures), HOSTS[host].call(plain, WITHOUT))
    trained = {name for name, each in model.named_parameters() if not each.requires_grad}
    assert len(trained) == len(own)


def test_an_attention_of_its_own_replaces_that_of_the_host() -> None:
    layer = HOSTS["layer"].make()
    with pytest.raises(PositionError, match="'grit' has its own attention, and that of TransformerEncoderLayer would"):
        structpe.inject(layer, "grit", start="own")
    handle = structpe.inject(layer, "grit", instead=True)
    with torch.no_grad():
        positions = structpe.encode(STRUCTURES, handle.encodings)
        prepared = handle.position.prepare(positions)
        x = handle.position.inputs(units(), prepared)
        mixed, _ = handle.position.attend(x, prepared, Site(0), Terms(mask=(PRESENT[:, None, None],)))
        expected = layer.norm1(x + mixed)
        expected = layer.norm2(expected + layer.linear2(layer.linear1(expected).relu()))
        assert torch.allclose(HOSTS["layer"].call(layer, positions), expected[PRESENT], atol=1e-6)
    assert not any(each.requires_grad for each in layer.self_attn.parameters())


def test_several_tokens_of_a_unit_enter_pytorch_too() -> None:
    whole = HOSTS["encoder"].make()
    handle = structpe.inject(whole, WAYS["bias"], start="own")
    drawn(handle.position)
    pieces = TokenPositions.of(STRUCTURES, [[0, 0, 1, 2], [1, 0]], handle.encodings)
    with torch.no_grad():
        found = HOSTS["encoder"].call(whole, pieces)
        swapped = TokenPositions.of(STRUCTURES, [[0, 1, 2, 3], [0, 1]], handle.encodings)
        assert not torch.allclose(found, HOSTS["encoder"].call(whole, swapped), atol=1e-4)
    other = HOSTS["encoder"].make()
    encodings = structpe.inject(other, "detr", start="own").encodings
    grids = TokenPositions.of([structpe.grid((2, 2))] * 2, [[0, 0, 1, 2], [1, 0]], encodings)
    with pytest.raises(PositionError, match=r"acts before tokens are projected, where each token must be one unit"):
        HOSTS["encoder"].call(other, grids)


def test_one_structure_serves_all_rows_of_a_batch() -> None:
    """A network over the units reads each row by itself."""
    model = small("gpt2")
    structpe.inject(model, "rnn", start="own", structures="path")
    ids = torch.randint(3, 60, (3, 6))
    with torch.no_grad():
        together = model(ids).logits
        for row in range(3):
            assert torch.allclose(model(ids[row : row + 1]).logits[0], together[row], atol=1e-5)


def test_a_llama_turned_by_depth_writes_with_a_cache_and_is_loaded_again(tmp_path: Path) -> None:
    model, ids = small("llama"), torch.tensor([[10, 11, 12, 13, 14]])
    structpe.inject(model, {**rotary_from(model.config), "encoding": "depth"}, instead=True)
    options: dict[str, Any] = {"structpe": [structpe.tree(list("abcde"), [2, 3, 0, 5, 3])], "max_new_tokens": 5}
    texts = [model.generate(ids, **options, do_sample=False, use_cache=cache, num_beams=2) for cache in (True, False)]
    assert torch.equal(*texts)
    model.save_pretrained(tmp_path)  # its position model has no numbers
    again = load(type(model), tmp_path).eval()
    with torch.no_grad():
        found = (each(ids, structpe=options["structpe"]).logits for each in (model, again))
        assert torch.equal(*found)


def test_a_part_of_a_model_of_ones_own_is_told_its_structures_from_outside() -> None:
    own = nn.Sequential(HOSTS["encoder"].make(), nn.Identity())
    with pytest.raises(PositionError, match=r"Sequential is not known; .* If it has such a part, inject into the part"):
        structpe.inject(own, "shaw")
    handle = structpe.inject(own[0], "rotary", start="own")
    with handle.reading([path(list("abcd"))] * 2):
        assert own(units()).shape == (2, 4, 8)
    with pytest.raises(PositionError, match="TransformerEncoder is no model of Hugging Face, and has no collator"):
        handle.collator(None)
