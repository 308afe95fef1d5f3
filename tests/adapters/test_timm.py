"""Position models in Vision Transformers, timm's and one of its form: from the same function, on grids of any size."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch

from structpe.adapters import dims, eject, inject
from structpe.errors import PositionError
from structpe.positions import Dims, build
from tests.adapters.vision import HEADS, WIDTH, vit

KINDS = ["form", "timm"]
SIZES = [(2, 3, 16, 16), (1, 3, 8, 24)]
SWIN = {"name": "swin", "window": [6, 6]}


def images(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("position", [SWIN, "shaw", "vit-2d", ["t5", "vit"]])
def test_at_first_it_computes_what_it_did_and_every_number_learns(kind: str, position: Any) -> None:
    model = vit(kind)
    plain, keys = copy.deepcopy(model), model.state_dict().keys()
    injected = inject(model, position)
    for size in SIZES:
        out, expected = model(images(*size)), plain(images(*size))
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
        out.square().sum().backward()
    learned = [each for each in injected.position.parameters() if each.requires_grad]
    assert all(each.grad is not None and each.grad.abs().max() > 0 for each in learned)
    with torch.no_grad():
        for each in learned:
            each.normal_()
    moved = model(images(*SIZES[0]))
    assert (moved - plain(images(*SIZES[0]))).abs().max() > 1e-4
    again = vit(kind)
    inject(again, position)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(images(*SIZES[0])), moved)
    eject(model)
    assert model.state_dict().keys() == keys
    assert torch.equal(model(images(*SIZES[1])), plain(images(*SIZES[1])))


def by_hand(attention: Any, x: torch.Tensor, bias: torch.Tensor, turn: Any = None) -> torch.Tensor:
    """Attention with something added to the scores, and queries and keys turned."""
    n, d = x.shape[1], WIDTH // HEADS
    q, k, v = attention.qkv(x).view(len(x), n, 3, HEADS, d).permute(2, 0, 3, 1, 4)
    if turn is not None:
        q, k = turn(q), turn(k)
    mixed = (q @ k.transpose(-1, -2) / math.sqrt(d) + bias).softmax(-1) @ v
    out: torch.Tensor = attention.proj(mixed.transpose(1, 2).flatten(2))
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_a_bias_is_of_offsets_of_patches_and_prefixes_have_none(kind: str) -> None:
    model = vit(kind)
    injected = inject(model, build(SWIN, dims(model)), start="own")
    table = injected.position.get_parameter("table.weight")
    torch.nn.init.normal_(table)
    attention, seen = model.blocks[1].attn, []
    attention.register_forward_hook(lambda _, given, out: seen.append((given[0], out)))
    with torch.no_grad():
        model(images(2, 3, 8, 24))
        ((x, out),) = seen
        bias = torch.zeros(HEADS, 15, 15)
        places = [(row, column) for row in range(2) for column in range(6)]
        for i, (y, z) in enumerate(places):
            for j, (up, left) in enumerate(places):
                number = (y - up + 5) * 11 + (z - left + 5)
                bias[:, 3 + i, 3 + j] = table[1, number] if table.ndim == 3 else table[1, :, number]
        torch.testing.assert_close(out, by_hand(attention, x, bias), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_rotations_turn_patches_and_leave_prefixes(kind: str) -> None:
    model = vit(kind)
    position = build("mixed-rotary", dims(model))
    inject(model, position, start="own", layers=None)
    attention, seen = model.blocks[0].attn, []
    attention.register_forward_hook(lambda _, given, out: seen.append((given[0], out)))
    for size in SIZES:
        seen.clear()
        model(images(*size))
        ((x, out),) = seen
        plain = by_hand(attention, x, torch.zeros(()))
        assert (out - plain).abs().max() > 1e-4
        # A class token that attends to itself only has the value of itself, turned or not.
        alone = torch.full((x.shape[1],) * 2, -math.inf).fill_diagonal_(0.0)
        torch.testing.assert_close(
            type(attention).forward(attention, x, attn_mask=alone), attention(x, attn_mask=alone), rtol=0, atol=1e-5
        )


@pytest.mark.parametrize("kind", KINDS)
def test_masks_of_the_caller_stay_in_force(kind: str) -> None:
    model = vit(kind)
    plain = copy.deepcopy(model)
    inject(model, SWIN)
    allowed = torch.rand(19, 19, generator=torch.Generator().manual_seed(2)) > 0.3
    allowed |= torch.eye(19, dtype=torch.bool)
    added = torch.randn(2, 1, 19, 19, generator=torch.Generator().manual_seed(2))
    for named in ({"attn_mask": allowed}, {"attn_mask": added}, {"is_causal": True}):
        found, expected = (each(images(*SIZES[0]), **named) for each in (model, plain))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
        assert (expected - plain(images(*SIZES[0]))).abs().max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_checkpointed_layers_have_the_same_gradients(kind: str) -> None:
    model = vit(kind).train()
    injected = inject(model, [SWIN, "vit"])
    with torch.no_grad():
        for each in injected.position.parameters():
            each.normal_()
    grads = []
    for saving in (False, True):
        model.set_grad_checkpointing(saving)
        model.zero_grad()
        model(images(*SIZES[0])).square().sum().backward()
        grads.append([each.grad for each in model.parameters() if each.grad is not None])
    assert len(grads[0]) == len(grads[1]) > 10
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_checkpointed_passes_of_two_forms_have_the_gradients_of_each(kind: str) -> None:
    model = vit(kind).train()
    injected = inject(model, ["shaw", "vit"], start="own")
    grads = []
    for saving in (False, True):
        model.set_grad_checkpointing(saving)
        model.zero_grad()
        # As many patches in both, and both passes before the gradients.
        sum(model(images(1, 3, *size)).square().sum() for size in ((16, 16), (8, 32))).backward()  # type: ignore[union-attr]
        grads.append([each.grad for each in injected.injected.parameters() if each.grad is not None])
    assert len(grads[0]) == len(grads[1]) > 1
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_only_the_given_layers_ask() -> None:
    model = vit("form")
    plain = copy.deepcopy(model)
    injected = inject(model, "t5", layers=[1], start="own")
    torch.nn.init.normal_(injected.position.get_parameter("table.weight"))
    seen: list[list[torch.Tensor]] = [[], []]
    for each, into in zip((model, plain), seen, strict=True):
        for block in each.blocks:
            block.attn.register_forward_hook(lambda _, given, out, into=into: into.append(out))
        each(images(*SIZES[0]))
    assert torch.equal(seen[0][0], seen[1][0])
    assert not torch.allclose(seen[0][1], seen[1][1])


def passed(model: Any, position: Any, **options: Any) -> torch.Tensor:
    inject(model, position, **options)
    out: torch.Tensor = model(images(*SIZES[0]))
    return out


@pytest.mark.parametrize(
    ("position", "options", "message"),
    [
        (build("t5", Dims(8, 2, 2)), {}, r"was built for Dims\(width=8, .* needs Dims\(width=12, heads=3, layers=2\)"),
        ("grit", {}, "has its own attention, which the encoder of Form cannot take"),
        ("t5", {"layers": [0, 2]}, "there is no layer 2; the encoder has 2, 0..1"),
        ("mixed-rotary", {}, "cannot start at zero; use start='own'"),
        ("sinusoidal-nd", {}, "has no numbers to learn"),
    ],
)
def test_what_cannot_enter(position: Any, options: Any, message: str) -> None:
    model = vit("form")
    with pytest.raises(PositionError, match=message):
        inject(model, position, **options)
    assert "structpe" not in model._modules


def test_what_a_pass_cannot_be() -> None:
    with pytest.raises(PositionError, match=r"Linear is not known; .* Vision Transformers of timm's form"):
        inject(torch.nn.Linear(2, 2), "t5")
    model = vit("form", drop=True)
    with pytest.raises(PositionError, match=r"18 tokens, and the images have 3 \+ 16, .*set patch_drop_rate to 0"):
        passed(model, "t5")
    with pytest.raises(PositionError, match="the encoder has a position model already"):
        inject(model, "t5")
    model = vit("form")
    model.blocks[1].attn.fused_attn = False
    with pytest.raises(PositionError, match=r"called scaled_dot_product_attention 0 times, .*set fused_attn = True"):
        passed(model, "t5")
