"""Position models with PyTorch's own attention: what structpe.attend computes, in training and in inference."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention import flex_attention as of_torch
from torch.nn.functional import scaled_dot_product_attention

from structpe.adapters import eject, inject
from structpe.adapters.pytorch import additive_masks, flex
from structpe.attention import attend
from structpe.errors import PositionError, UnsupportedTerm
from structpe.positions import Dims, PositionModel, Positions, Site, build
from structpe.positions.batch import encode
from structpe.structure import path
from structpe.terms import Terms
from tests.positions.cases import TREES, made
from tests.together import together

DIMS = Dims(8, 2, 3)
BIASES = ("t5", "alibi", "graphormer", "rel-scalar", "diet-abs", "glm-local", "swin-windows", "graformer")


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def batch(position: PositionModel) -> tuple[Positions, torch.Tensor]:
    """Positions of three trees, and which places hold a unit."""
    sizes = torch.tensor([each.unit_count for each in TREES])
    positions = encode(TREES, position.encodings)
    return positions.to(torch.device("cpu"), torch.float64), torch.arange(10) < sizes[:, None]


def biased(name: str, dims: Dims = DIMS) -> PositionModel:
    return made(name, dims)


@pytest.mark.parametrize("name", BIASES)
def test_fused_attention_with_the_mask_is_attention_with_the_terms(name: str) -> None:
    position = biased(name)
    (positions, present), (q, k, v) = batch(position), (drawn(3, 2, 10, 4, seed=seed) for seed in range(3))
    prepared = position.prepare(positions)
    try:
        masks = additive_masks(position, positions, present)
    except UnsupportedTerm as error:
        assert "call structpe.attend" in str(error)  # noqa: PT017
        return
    assert len(masks) == DIMS.layers
    for layer, mask in enumerate(masks):
        terms = position.terms(prepared, Site(layer)) + Terms(mask=(present[:, None, None],))
        expected = attend(q, k, v, terms, "dense").movedim(1, 2)[present]
        found = scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.dtype))  # a model may have no dtype
        assert torch.allclose(found.movedim(1, 2)[present], expected, atol=1e-12)
        assert found.isfinite().all()


def test_layers_with_one_table_share_one_mask_others_do_not() -> None:
    for name, count in (("t5", 1), ("t5-unshared", 3)):
        position = biased(name)
        assert len({id(mask) for mask in additive_masks(position, batch(position)[0])}) == count


def test_padding_is_known_to_positions_and_causal_attention_is_asked_for() -> None:
    position = biased("t5")
    positions, present = batch(position)
    (mask, *_) = additive_masks(position, positions)
    assert torch.equal((mask > -torch.inf)[:, 0, 0], present)
    (causal, *_) = additive_masks(position, encode([path(list("abcd"))], position.encodings), causal=True)
    assert torch.equal(causal[0, 0] > -torch.inf, torch.ones(4, 4, dtype=torch.bool).tril())


def test_what_is_no_mask_is_said() -> None:
    position = biased("shaw")
    with pytest.raises(
        UnsupportedTerm, match=r"acts by key, value cannot be written as an additive mask; call structpe\.attend"
    ):
        additive_masks(position, batch(position)[0])


def literal(layer: Any, x: torch.Tensor, terms: Terms) -> torch.Tensor:
    """A layer of PyTorch written out around attention with terms."""
    own = layer.self_attn

    def attended(x: torch.Tensor) -> torch.Tensor:
        q, k, v = (x @ own.in_proj_weight.T + own.in_proj_bias).view(*x.shape[:2], 3, 2, -1).permute(2, 0, 3, 1, 4)
        mixed: torch.Tensor = own.out_proj(attend(q, k, v, terms, "dense").transpose(1, 2).flatten(2))
        return mixed

    def fed(x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = layer.linear2(layer.activation(layer.linear1(x)))
        return out

    if layer.norm_first:
        x = x + attended(layer.norm1(x))
        return x + fed(layer.norm2(x))
    x = layer.norm1(x + attended(x))
    out: torch.Tensor = layer.norm2(x + fed(x))
    return out


def encoder(norm_first: bool = False, batch_first: bool = True) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=batch_first, norm_first=norm_first).double()
    whole = nn.TransformerEncoder(layer, 3, enable_nested_tensor=batch_first and not norm_first)
    for parameter in whole.parameters():  # layers are copies of one
        nn.init.normal_(parameter, std=0.5)
    return whole


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize(("norm_first", "batch_first"), [(False, True), (True, True), (False, False)])
def test_an_encoder_of_pytorch_is_one_with_the_terms(
    training: bool, gradients: bool, norm_first: bool, batch_first: bool
) -> None:
    # The fast path, in inference without gradients, would answer NaN.
    whole = encoder(norm_first, batch_first).train(training)
    position = inject(whole, biased("t5-unshared"), start="own").position
    (positions, present), x = batch(position), drawn(3, 10, 8)
    with torch.set_grad_enabled(gradients):
        given = x if batch_first else x.transpose(0, 1)
        found = whole(given, structpe=positions, src_key_padding_mask=~present)
        found = found if batch_first else found.transpose(0, 1)
    expected, prepared = x, position.prepare(positions)
    for number, layer in enumerate(whole.layers):
        terms = position.terms(prepared, Site(number)) + Terms(mask=(present[:, None, None],))
        expected = literal(layer, expected, terms)
    assert torch.allclose(found[present], expected[present], atol=1e-10)
    if gradients:
        found[present].square().sum().backward()
        assert all(p.grad is not None and p.grad.abs().max() > 0 for p in position.parameters())


def test_pytorchs_fast_path_is_wrong_with_such_masks_and_not_taken() -> None:
    # The pitfall itself: once PyTorch has mended this, the hooks are not needed any more.
    whole, position = encoder().eval(), biased("t5")
    positions, _ = batch(position)
    mask = additive_masks(position, positions)[0].flatten(0, 1)
    mask = mask.masked_fill((torch.arange(10) > 6)[None, :, None], -torch.inf)
    with torch.no_grad():
        assert not whole.layers[0](drawn(3, 10, 8), src_mask=mask).isfinite().all()
        inject(whole, position, start="own")
        assert whole(drawn(3, 10, 8), structpe=positions).isfinite().all()


@pytest.mark.parametrize("name", ["t5", "learned"])
def test_one_layer_and_its_inputs(name: str) -> None:
    layer: Any = encoder().layers[0]
    position = inject(layer, made(name, Dims(8, 2, 1)), start="own").position
    positions, present = batch(position)
    x, prepared = drawn(3, 10, 8), position.prepare(positions)
    terms = position.terms(prepared, Site(0)) + Terms(mask=(present[:, None, None],))
    expected = literal(layer, position.inputs(x, prepared), terms)
    assert torch.allclose(layer(x, structpe=positions)[present], expected[present], atol=1e-10)
    assert torch.allclose(layer(src=x, structpe=positions)[present], expected[present], atol=1e-10)


@pytest.mark.parametrize("batch_first", [True, False])
def test_an_attention_of_pytorch_keeps_its_own_masks(batch_first: bool) -> None:
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(8, 2, batch_first=batch_first).double()
    position = inject(attention, made("t5", Dims(8, 2, 1)), start="own").position
    (positions, present), x = batch(position), drawn(3, 10, 8)
    given = x if batch_first else x.transpose(0, 1)
    earlier = torch.ones(10, 10, dtype=torch.bool).triu(1)
    last = torch.zeros(3, 10, dtype=torch.bool)
    last[:, 0] = True
    found = attention(given, given, given, attn_mask=earlier, key_padding_mask=last, structpe=positions)[0]
    allowed = present[:, None] & ~earlier & ~last[:, None]
    terms = position.terms(position.prepare(positions), Site(0)) + Terms(mask=(allowed[:, None],))
    q, k, v = (x @ attention.in_proj_weight.T + attention.in_proj_bias).view(3, 10, 3, 2, 4).permute(2, 0, 3, 1, 4)
    expected = attention.out_proj(attend(q, k, v, terms, "dense").transpose(1, 2).flatten(2))
    seen = allowed.any(-1) & present
    assert torch.allclose((found if batch_first else found.transpose(0, 1))[seen], expected[seen], atol=1e-10)


def test_without_positions_it_is_the_module_of_before() -> None:
    whole = encoder().eval()
    plain = copy.deepcopy(whole)
    inject(whole, biased("t5"))
    x, padding = drawn(3, 10, 8), torch.zeros(3, 10, dtype=torch.bool)
    assert torch.allclose(whole(x, structpe=None, src_key_padding_mask=padding), plain(x), atol=1e-12)
    with pytest.raises(PositionError, match=r"call it with structpe=structpe\.encode"):
        whole(x)
    eject(whole)
    assert torch.allclose(whole(x), plain(x), atol=1e-12)
    assert set(whole.state_dict()) == set(plain.state_dict())


def test_numbers_are_part_of_the_module() -> None:
    whole = encoder()
    inject(whole, biased("t5"), start="own")
    other = encoder()
    inject(other, build("t5", DIMS).double(), start="own")
    other.load_state_dict(whole.state_dict())
    positions, x = batch(biased("t5"))[0], drawn(3, 10, 8)
    assert torch.equal(other.eval()(x, structpe=positions), whole.eval()(x, structpe=positions))


@pytest.mark.parametrize(
    ("module", "name", "dims", "message"),
    [
        (nn.Linear(2, 2), "t5", DIMS, "Linear is not known; known are models of Hugging Face, nn.Transformer, "),
        (encoder(), "t5", Dims(8, 2, 2), r"the encoder needs Dims\(width=8, heads=2, layers=3\)"),
        (encoder(), "cope", DIMS, "would not be used; say so with instead=True"),
        (
            nn.MultiheadAttention(8, 2),
            "learned",
            Dims(8, 2, 1),
            "which the encoder of MultiheadAttention cannot take",
        ),
    ],
)
def test_what_cannot_enter(module: nn.Module, name: str, dims: Dims, message: str) -> None:
    with pytest.raises(PositionError, match=message):
        inject(module, build(name, dims))


def test_a_second_position_model_and_something_else_than_positions() -> None:
    whole = encoder()
    inject(whole, biased("t5"))
    with pytest.raises(PositionError, match="the encoder has a position model already"):
        inject(whole, biased("t5"))
    with pytest.raises(PositionError, match="structpe is an empty list; give a structure for each row"):
        whole(drawn(3, 10, 8), structpe=[])
    with pytest.raises(PositionError, match=r"structpe takes what structpe\.encode gives, .*; given is list"):
        whole(drawn(3, 10, 8), structpe=[object()])
    for words in (["a", "b"], "a b"):
        with pytest.raises(PositionError, match=r"words are given; a sentence is structpe\.path\(\['a', 'b'\]\), "):
            whole(drawn(3, 10, 8), structpe=words)
    with pytest.raises(PositionError, match=r"number 0 is str 'a'; for words structpe\.path\(words\), or structpe\.tr"):
        whole(drawn(3, 10, 8), structpe=[["a", "b"]])
    with pytest.raises(PositionError, match="the positions are of 10 units, and there are 9 tokens"):
        whole(drawn(3, 9, 8), structpe=batch(biased("t5"))[0])
    with pytest.raises(PositionError, match="positions are of a batch; the input has 2 axes"):
        whole(drawn(10, 8), structpe=batch(biased("t5"))[0])


@pytest.mark.parametrize("name", ["t5", "glm-local", "deberta", "code-transformer", "exphormer", "da-transformer"])
def test_flex_attention_reads_the_terms(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_torch, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)  # it would trace, and warn
    position = made(name, DIMS)
    (positions, present), (q, k, v) = batch(position), (drawn(3, 2, 10, 16, seed=seed) for seed in range(3))
    position = made(name, Dims(32, 2, 3))
    terms = position.terms(position.prepare(positions), Site(1)) + Terms(mask=(present[:, None, None],))
    try:
        given = flex(q, k, terms)
    except UnsupportedTerm as error:
        assert "call structpe.attend" in str(error)  # noqa: PT017
        return
    with torch.no_grad():
        found = of_torch.flex_attention(q, k, v, **given)
        expected = attend(q, k, v, terms, "dense")
    assert torch.allclose(found.movedim(1, 2)[present], expected.movedim(1, 2)[present], atol=1e-9)


def transformer(batch_first: bool) -> Any:
    """A small ``nn.Transformer`` in evaluation, whose weights attend unevenly."""
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 2, 2, 16, batch_first=batch_first).eval().double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2 if parameter.ndim > 1 else 1)
    return model


def written(model: Any, source: torch.Tensor, target: torch.Tensor, sizes: tuple[int, ...], **given: Any) -> Any:
    """The output (b, m, d), of rows with as many tokens at both ends; others are padding."""
    n, m = source.shape[1], target.shape[1]
    sources, targets = (torch.arange(k)[None] >= torch.tensor(sizes)[:, None] for k in (n, m))
    masks = {"src_key_padding_mask": sources, "memory_key_padding_mask": sources, "tgt_key_padding_mask": targets}
    causal = torch.ones(m, m, dtype=torch.bool).triu(1)
    first = model.batch_first
    source, target = (x if first else x.transpose(0, 1) for x in (source, target))
    found = model(source, target, tgt_mask=causal, **masks, **given)
    return found if first else found.transpose(0, 1)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@together(("where", "batch_first"), [("encoder", False), ("decoder", True), ("decoder", False), ("cross", True)])
def test_a_transformer_with_a_decoder_starts_at_zero_and_a_batch_is_each_row_alone(
    where: Any, batch_first: bool
) -> None:
    model, source, target = transformer(batch_first), drawn(2, 4, 16), drawn(2, 4, 16, seed=1)
    structures = [path(["a"] * 4), path(["a"] * 2)]
    before = written(model, source, target, (4, 2))
    handle = inject(model, ["t5", "shaw"], where=where)
    assert torch.allclose(written(model, source, target, (4, 2), structpe=structures), before, atol=1e-12)
    with torch.no_grad():
        for parameter in handle.position.parameters():
            parameter.normal_()
    after = written(model, source, target, (4, 2), structpe=structures)
    alone = written(model, source[1:, :2], target[1:, :2], (2,), structpe=structures[1:])
    assert not torch.allclose(after[1, :2], before[1, :2], atol=1e-2)
    assert torch.allclose(after[1, :2], alone[0], atol=1e-12)
    with handle.reading({where: structures} if where == "cross" else structures):
        assert torch.equal(written(model, source, target, (4, 2)), after)
    assert torch.equal(written(model, source, target, (4, 2), structpe=None), before)
    eject(model)
    assert torch.equal(written(model, source, target, (4, 2)), before)


def test_a_decoder_alone_takes_positions_at_both_of_its_attentions() -> None:
    model, source, target = transformer(True).decoder, drawn(1, 4, 16), drawn(1, 3, 16, seed=1)
    before = model(target, source)
    own, crossing = (inject(model, "shaw", where=where) for where in ("decoder", "cross"))
    assert own.injected.layers == crossing.injected.layers == (0, 1)
    structpe = {"decoder": encode([path(["a"] * 3)], own.encodings), "cross": [path(["a"] * 4)]}
    assert torch.allclose(model(target, source, structpe=structpe), before, atol=1e-12)
    for handle in (own, crossing):
        now = model(target, source, structpe=structpe)
        with torch.no_grad():
            for parameter in handle.position.parameters():
                parameter.normal_()
        assert not torch.allclose(model(target, source, structpe=structpe), now, atol=1e-2)
