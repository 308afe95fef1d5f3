"""Each family of Hugging Face's models: it starts as its checkpoint, reads no padding, and generates with its cache."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
import torch

from structpe.adapters import dims, eject, inject
from structpe.adapters.transformers import FAMILIES, TokenPositions, take_t5
from structpe.errors import PositionError
from structpe.positions import build
from structpe.structure import path
from structpe.transforms import grid
from tests.adapters.families import BOTH, DECODERS, ROWS, small
from tests.adapters.models import CONFIGS, HEADS, LAYERS, WORDS
from tests.modules import ROOT
from tests.representatives import only

UNITS = ([-1, 0, 1, 2, -1, 3, -1, -1], [-1, -1, -1, -1, 0, 1, -1, -1])
"""The units of two texts, the second of which begins, in a decoder, or ends with three tokens of padding."""
PLACES = [(name, where) for name in ROWS for where in FAMILIES[name]]
QUICK = [(name, where) for name, where in PLACES if name in {"albert", "esm", "vit", "smollm3", "gpt_oss"}]


def batch_of(name: str, row: int | None = None) -> dict[str, Any]:
    """Two images or texts, or one of them alone, without padding."""
    generator = torch.Generator().manual_seed(1)
    rows = slice(None) if row is None else slice(row, row + 1)
    if name == "vit":
        return {"pixel_values": torch.randn(2, 1, 6, 6, generator=generator, dtype=torch.float64)[rows]}
    ids, labels = (torch.randint(3, WORDS, (2, n), generator=generator) for n in (8, 5))
    mask = torch.ones(2, 8, dtype=torch.int64)
    mask[1, _padding(name)] = 0
    batch = {"input_ids": ids[rows], "attention_mask": mask[rows]}
    if row is not None:
        batch = {key: each[:, mask[row].bool()] for key, each in batch.items()}
    return batch | ({"labels": labels[rows]} if name in BOTH else {})


def _padding(name: str) -> slice:
    return slice(0, 3) if name in DECODERS else slice(5, 8)


def positions(name: str, encodings: Any, where: str, row: int | None = None) -> Any:
    """The units of the tokens of a batch."""
    rows = slice(None) if row is None else slice(row, row + 1)
    structures: list[Any] = [path(list("abcd")), path(list("ab"))] if name != "vit" else [grid((3, 3))] * 2
    first, last = UNITS if name != "vit" else ([-1, *range(9)],) * 2
    last = last if name in DECODERS or name == "vit" else last[3:]
    if where == "decoder" and name in BOTH:
        first, last = first[:5], [0, 1, -1, -1, -1]
    elif row == 1 and name in DECODERS:
        last = last[3:]
    units: Any = [first, last]
    given = TokenPositions.of(structures[rows], units[rows], encodings, left=name in DECODERS)
    return {"decoder": given} if where == "decoder" and name in BOTH else given


def entered(name: str, where: Any, position: Any, **options: Any) -> tuple[Any, Any]:
    """A model with a position model, whose numbers are random with ``start="own"``."""
    model = small(name)
    handle = inject(model, position, where=where, **options)
    if options.get("start") == "own":
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for parameter in handle.position.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model, handle


def logits(model: Any, **batch: Any) -> torch.Tensor:
    """The scores at the tokens that are no padding."""
    with torch.no_grad():
        found: torch.Tensor = model(**batch).logits
    return found[batch["attention_mask"].bool()] if found.shape[:2] == (2, 8) else found.flatten(0, -2)


@cache
def of_the_checkpoint(name: str) -> torch.Tensor:
    return logits(small(name), **batch_of(name))


def near(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether all is equal up to 1e-6 of the largest, and of 1."""
    return bool((found - expected).abs().max() <= 1e-6 * max(1.0, float(expected.abs().max())))


@pytest.mark.parametrize("place", only(PLACES, *QUICK), ids="-".join)
def test_at_first_nothing_changes_then_a_batch_is_each_row_alone(place: tuple[str, Any]) -> None:
    name, where = place
    before, both = of_the_checkpoint(name), ["t5", "shaw"]
    model, handle = entered(name, where, both)
    batch, structpe = batch_of(name), positions(name, handle.encodings, where)
    assert model.config.model_type == name
    assert near(logits(model, **batch, structpe=structpe), before)
    model(**batch, structpe=structpe).logits.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in handle.position.parameters())

    model, handle = entered(name, where, both, start="own")
    together = logits(model, **batch, structpe=structpe)
    assert not torch.allclose(together, before, atol=1e-2)
    rows = [batch_of(name, row) | {"structpe": positions(name, handle.encodings, where, row)} for row in (0, 1)]
    alone = torch.cat([logits(model, **each) for each in rows])
    assert near(together, alone)


WRITING = [(name, position) for name in (*BOTH, *DECODERS) for position in ("t5", "shaw", "rotary")]


@pytest.mark.parametrize(
    "writing",
    only(WRITING, ("gemma2", "shaw"), ("gpt_oss", "rotary")),
    ids="-".join,
)
def test_scores_with_a_cache_are_those_without(writing: tuple[str, str]) -> None:
    """Also where a window no longer keeps the first keys: it is 4 tokens, of 8 and 6 more."""
    name, position = writing
    model, handle = entered(name, None, position, start="own")
    batch = {key: each for key, each in batch_of(name).items() if key != "labels"}
    options = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "return_dict_in_generate": True}
    options |= {"structpe": positions(name, handle.encodings, handle.injected.where), "output_scores": True}
    found, expected = (torch.stack(model.generate(**batch, use_cache=c, **options).scores) for c in (True, False))
    there = expected > -torch.inf
    assert torch.allclose(found[there], expected[there], atol=1e-4)


MASKED = {"mistral": None, "gemma2": ("sliding_attention", "full_attention")}
MASKED |= dict.fromkeys(("gemma3_text", "gpt_oss"), MASKED["gemma2"])


@pytest.mark.parametrize("name", only(MASKED, "gemma2", "gpt_oss"))
def test_a_bias_enters_where_the_models_mask_does(name: str) -> None:
    """As if Hugging Face's own attention, with its softcap, sinks and windows, got a mask with the bias in it."""
    model, handle = entered(name, "decoder", {"name": "t5", "encoding": "undirected-distance"}, start="own")
    units, table = UNITS[0], handle.position.get_parameter("table.weight")[0]
    masks = {window: torch.full((1, HEADS, 8, 8), -torch.inf, dtype=model.dtype) for window in (4, 8)}
    for i in range(8):
        for j in range(i + 1):
            far = abs(units[i] - units[j])
            known = units[i] >= 0 and units[j] >= 0
            for window in masks:
                if i - j < window:
                    masks[window][0, :, i, j] = table[16 + far if far else 0] if known else 0.0
    batch = batch_of(name, 0)
    found = logits(model, **batch, structpe=positions(name, handle.encodings, "decoder", 0))
    kinds = MASKED[name]
    given: Any = masks[4] if kinds is None else dict(zip(kinds, (masks[4], masks[8]), strict=True))
    plain = small(name)
    plain.set_attn_implementation("eager")
    with torch.no_grad():
        expected = plain(input_ids=batch["input_ids"], attention_mask=given).logits
    assert torch.allclose(found, expected.flatten(0, 1), atol=1e-5)


def test_a_softcap_is_of_scores_with_vectors_of_pairs() -> None:
    """Also where these are added after the rotation: without angles it is as without a rotation."""
    found, batch = [], batch_of("gemma2", 0)
    for instead in (False, True):
        model, handle = entered("gemma2", "decoder", "shaw", start="own", instead=instead)
        structpe = positions("gemma2", handle.encodings, "decoder", 0)
        found.append(logits(model, **batch, structpe=structpe, position_ids=torch.zeros(1, 8, dtype=torch.int64)))
    assert torch.allclose(*found, atol=1e-5)


def test_a_function_of_scores_beside_a_softcap_is_refused() -> None:
    model, handle = entered("gemma2", "decoder", "da-transformer", start="own")
    with pytest.raises(PositionError, match=r"caps its scores \(softcap=2\.0\), and the position model"):
        model(**batch_of("gemma2", 0), structpe=positions("gemma2", handle.encodings, "decoder", 0))


def test_weights_beside_a_sink_sum_to_less_than_one() -> None:
    model, plain = small("gpt_oss"), small("gpt_oss")
    handle = inject(model, "t5")
    batch = batch_of("gpt_oss", 0)
    structpe = positions("gpt_oss", handle.encodings, "decoder", 0)
    mine = model(**batch, structpe=structpe, output_attentions=True).attentions
    for one, other in zip(mine, plain(**batch, output_attentions=True).attentions, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
        assert one.sum(-1).max() < 1


@pytest.mark.parametrize("name", only(["esm", *DECODERS], "esm", "smollm3"))
def test_without_its_rotation_a_model_is_as_if_all_tokens_had_one_place(name: str) -> None:
    if name == "opt":
        return  # has learned places
    model = small(name)
    handle = inject(model, "t5", instead=True)
    batch = batch_of(name)
    nowhere = TokenPositions.of([path(["a"])] * 2, [[-1] * 8] * 2, handle.encodings)
    plain, ids = small(name), torch.zeros(2, 8, dtype=torch.int64)
    assert torch.allclose(logits(model, **batch, structpe=nowhere), logits(plain, **batch, position_ids=ids), atol=1e-5)


def test_without_learned_positions_the_order_of_patches_says_nothing() -> None:
    model, batch = small("vit"), batch_of("vit")
    handle = inject(model, "t5", instead=True)
    nowhere = TokenPositions.of([path(["a"])] * 2, [[-1] * 10] * 2, handle.encodings)
    found, moved = (
        logits(model, pixel_values=each, structpe=nowhere)
        for each in (batch["pixel_values"], batch["pixel_values"].roll(2, dims=3))
    )
    assert torch.allclose(found, moved, atol=1e-5)
    eject(model)
    assert torch.equal(logits(model, **batch), of_the_checkpoint("vit"))


def test_the_layers_of_albert_are_one() -> None:
    assert dims(small("albert")).layers == 1
    inject(small("albert"), "shaw")
    with pytest.raises(
        PositionError, match="enter the first layer, which the encoder of AlbertForMaskedLM cannot take"
    ):
        inject(small("albert"), "learned", start="own")


def test_each_layer_of_umt5_has_a_table() -> None:
    model = small("umt5")
    batch, before = batch_of("umt5"), of_the_checkpoint("umt5")
    with pytest.raises(PositionError, match=r"2 layers with a table each, .*'t5' has one.*t5-unshared"):
        take_t5(build("t5", dims(model)), model)
    inject(model, take_t5(build("t5-unshared", dims(model)), model), start="own", structures="path", instead=True)
    assert torch.allclose(logits(model, **batch), before, atol=1e-5)
    tables = [each for name, each in model.named_parameters() if "encoder" in name and "attention_bias" in name]
    assert [each.requires_grad for each in tables] == [False] * LAYERS


def test_every_family_is_tested_and_on_the_page() -> None:
    assert {*FAMILIES} == {*ROWS, *CONFIGS}
    page = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
    table = page.partition("### Families")[2].partition("|---|")[2].partition("\n### ")[0]
    rows = [line.split("|")[1:] for line in table.splitlines() if line.startswith("| `")]
    found = {name: each for row in rows for name in re.findall("`(.+?)`", row[0]) for each in [row[1]]}
    assert {name: re.findall(r"\w+", each) for name, each in found.items()} == {
        name: [*places] for name, places in FAMILIES.items()
    }
