"""Steps with caches are rows of the whole: for every causal position model, however they are cut and reordered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from structpe.data.batch import Batch, EdgeTypes
from structpe.nn import steps as steps_module
from structpe.nn.language_model import LanguageModel
from structpe.nn.layer import AttentionConfig, KVCache, StackConfig, changed
from structpe.nn.seq2seq import EncoderDecoder, TransformerConfig
from structpe.nn.steps import StepLayer
from structpe.positions import Dims, PositionModel, build
from structpe.structure import path
from tests.examples import examples
from tests.positions.cases import CAUSAL, DIMS, made, of_two_layers
from tests.representatives import fewer
from tests.together import together

pytestmark = pytest.mark.usefixtures("coarse_paths")

VOCABULARY = 7
LINEAR = AttentionConfig(feature_map="elu")
DENSE = AttentionConfig(kernel="dense")


def language_model(position: PositionModel, **options: object) -> LanguageModel:
    torch.manual_seed(1)
    config = StackConfig.transformer(position.dims, 12, **options)
    net = LanguageModel(config, VOCABULARY, position).double().eval()
    for parameter in net.decoder.parameters():  # biases start at zero
        nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    return net


def text(rows: int, n: int) -> Tensor:
    return torch.randint(VOCABULARY, (rows, n), generator=torch.Generator().manual_seed(0))


def in_parts(net: LanguageModel, units: Tensor, parts: Sequence[int]) -> Tensor:
    """Log-probabilities of texts read in parts of these lengths."""
    state, read = net.start(len(units)), []
    for part in units.split(list(parts), dim=1):
        read.append(net.step(part, state))
    return torch.cat(read, dim=1)


@pytest.mark.parametrize("name", fewer(CAUSAL))
def test_units_one_by_one_are_the_whole_text(name: str) -> None:
    """More units than a cache has room for at first, and than positions are made for, unless a table is smaller."""
    length = 14 if name in ("vit", "vit-2d", "vivit", "cai") else 35
    net, units = language_model(of_two_layers(name)), text(2, length)
    with torch.no_grad():
        whole = in_parts(net, units, [length])
        steps = in_parts(net, units, [1, 1, length - 8, *[1] * 6])
        without = net(units)[0]
    torch.testing.assert_close(steps, whole, rtol=0, atol=1e-6)  # log-probabilities are float32
    torch.testing.assert_close(without, whole, rtol=0, atol=1e-6)
    with torch.no_grad():
        short = in_parts(net, units[:, :6], [6])
    torch.testing.assert_close(short, whole[:, :6], rtol=0, atol=1e-6)


@together("options", [{}, {"activation": "gelu"}, {"norm_first": False}, {"attention": LINEAR}, {"attention": DENSE}])
@together("parts", [[4, 1, 1, 3, 1], [1, 1, 7, 1], [9, 1]])
def test_parts_of_any_length_are_the_whole_text(options: dict[str, object], parts: list[int]) -> None:
    name = "sinusoidal" if options.get("attention") is LINEAR else "t5"
    net, units = language_model(made(name), **options), text(3, 10)
    with torch.no_grad():
        torch.testing.assert_close(in_parts(net, units, parts), in_parts(net, units, [10]), rtol=0, atol=1e-6)


def test_gradients_go_through_the_cache() -> None:
    net, units = language_model(made("t5")), text(2, 6)
    gradients = []
    for parts in ([6], [2, 1, 1, 2]):
        net.zero_grad()
        in_parts(net, units, parts).double().square().sum().backward()
        gradients.append([parameter.grad.clone() for parameter in net.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_reading_without_gradients_goes_on_with_them() -> None:
    net, units = language_model(made("t5")), text(2, 6)
    state = net.start(2)
    with torch.inference_mode():
        for place in range(3):
            net.step(units[:, place : place + 1], state)
    with torch.no_grad():
        net.step(units[:, 3:4], state)
    last = net.step(units[:, 4:], state)
    last.sum().backward()
    torch.testing.assert_close(last, in_parts(net, units, [6])[:, 4:], rtol=0, atol=1e-6)


@pytest.mark.parametrize("position", ["t5-causal", "rotary", "shaw", "sinusoidal"])
def test_rearranged_weights_compute_the_same(position: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32, whatever the number of rows."""
    monkeypatch.setattr(steps_module, "_LEAST", 1)
    dims = Dims(128, 4, 2)
    torch.manual_seed(0)
    net = LanguageModel(StackConfig.transformer(dims, 256), 200, build(position, dims)).eval()
    units = torch.randint(200, (3, 9))
    with torch.no_grad():
        torch.testing.assert_close(in_parts(net, units, [1] * 9), in_parts(net, units, [9]), rtol=0, atol=2e-5)


@pytest.mark.parametrize("copying", [False, True])
def test_several_texts_of_each_source_are_as_alone(copying: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32, with rearranged weights, with sources of different lengths; texts of one source read it together."""
    monkeypatch.setattr(steps_module, "_LEAST", 1)
    config = TransformerConfig(128, 4, 1, 2, feedforward=256, dropout=0.0, copy_units=copying)
    torch.manual_seed(0)
    encoder, decoder = (build("t5", config.dims(side)) for side in ("encoder", "decoder"))
    net = EncoderDecoder(config, 200, encoder, decoder).eval()
    sources = Batch.of([path([""] * size) for size in (2, 5)], encoder.encodings, EdgeTypes())
    units = torch.randint(200, (4, 6))
    with torch.no_grad():
        state = net.start(sources.replaced(x=torch.arange(7)))
        whole = net.start(sources.replaced(x=torch.arange(7)))
        for each in (state, whole):
            each.repeat(2)
        steps = torch.cat([net.step(unit, state) for unit in units.split(1, dim=1)], dim=1)
        torch.testing.assert_close(steps, net.step(units, whole), rtol=0, atol=1e-4)
        state.select(torch.tensor([1]))
        state.go_on(torch.tensor([1, 1]), units[2:])
        after = net.step(units[2:3, :1].expand(2, 1), state)
        torch.testing.assert_close(after[0], after[1], rtol=0, atol=1e-5)
        alone = Batch.of([path([""] * 5)], encoder.encodings, EdgeTypes())
        expected = net.step(
            torch.cat([units[3:], units[2:3, :1]], dim=1), net.start(alone.replaced(x=torch.arange(2, 7)))
        )
        torch.testing.assert_close(after[:1, 0], expected[:, -1], rtol=0, atol=1e-4)


@pytest.mark.parametrize("after", ["none", "relu", "gelu"])
@pytest.mark.parametrize(("dtype", "rows"), [(torch.float32, 200), (torch.float32, 1), (torch.float64, 200)], ids=str)
def test_a_linear_map_is_the_product(dtype: torch.dtype, rows: int, after: steps_module.After) -> None:
    weight, bias, x = (torch.randn(*shape, dtype=dtype) for shape in ((300, 64), (300,), (rows, 5, 64)))
    made_of = steps_module.linear_map(weight, bias, after)
    expected = nn.functional.linear(x, weight, bias)
    torch.testing.assert_close(made_of(x), expected if after == "none" else getattr(nn.functional, after)(expected))
    rearranged = isinstance(made_of, steps_module._Rearranged) and made_of.tidy is not None
    assert rearranged == (steps_module._has_operators() and dtype == torch.float32 and rows == 200)


def layers_of(net: LanguageModel) -> list[type]:
    """The kinds of the layers that a step asks."""
    state = net.start(1)
    with torch.no_grad():
        net.step(text(1, 1), state)
    return [type(layer) for layer in state.steps.stack(net.decoder.stack).layers]


def test_only_a_known_layer_is_asked_in_short() -> None:
    assert layers_of(language_model(made("t5"))) == [StepLayer] * DIMS.layers
    for options in ({"norm_first": False}, {"attention": LINEAR}):
        assert StepLayer not in layers_of(language_model(made("nope"), **options))


def test_a_hook_of_a_layer_is_called_in_each_step() -> None:
    net, calls = language_model(made("t5")), []
    net.decoder.stack.layers[1].attention.out.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        in_parts(net, text(1, 5), [1] * 5)
    assert len(calls) == 5


# --- the cache ---

Step = Callable[[KVCache, Tensor], Tensor]


def appended(n: int) -> Step:
    def step(cache: KVCache, kept: Tensor) -> Tensor:
        new = torch.randn(len(kept), 2, n, 3)
        keys, values = cache.append(new, -new)
        joined = torch.cat([kept, new], dim=2)
        assert torch.equal(keys, joined)
        assert torch.equal(values, -joined)
        return joined

    return step


def selected(seed: int) -> Step:
    def step(cache: KVCache, kept: Tensor) -> Tensor:
        rows = torch.randint(len(kept), (1 + seed % 4,), generator=torch.Generator().manual_seed(seed))
        cache.select(rows)
        return kept[rows]

    return step


def replaced(seed: int) -> Step:
    def step(cache: KVCache, kept: Tensor) -> Tensor:
        rows = torch.randint(len(kept), (len(kept),), generator=torch.Generator().manual_seed(seed))
        alike = (kept == kept[rows]).all((0, 1, 3))
        here = changed(rows)
        cache.replace(here, rows[here], int(alike.long().cumprod(0).sum()))
        return kept[rows]

    return step


STEPS = st.one_of(st.integers(1, 40).map(appended), st.integers(0, 99).map(selected), st.integers(0, 99).map(replaced))


@examples(40)
@given(steps=st.lists(STEPS, max_size=8), gradients=st.booleans())
def test_a_cache_holds_what_was_appended_and_chosen(steps: list[Step], gradients: bool) -> None:
    cache, kept = KVCache(), torch.zeros(3, 2, 0, 3)
    with torch.set_grad_enabled(gradients):
        for step in [appended(1), *steps, appended(2)]:
            kept = step(cache, kept)
            assert cache.length == kept.shape[2] <= cache.capacity
            assert cache.keys is not None
            assert torch.equal(cache.keys, kept)
            assert torch.equal(cache.values, -kept)


def test_a_cache_moves_its_units_when_it_doubles_only() -> None:
    cache, places, capacities = KVCache(), set(), set()
    with torch.no_grad():
        for _ in range(130):
            new = torch.zeros(1, 1, 1, 2)
            keys, _ = cache.append(new, new)
            places.add(keys.data_ptr())
            capacities.add(cache.capacity)
    assert capacities == {1, 32, 64, 128, 256}
    assert len(places) <= 5


def test_an_empty_cache_has_nothing_to_choose_from() -> None:
    cache = KVCache()
    cache.select(torch.tensor([0, 0]))
    cache.replace(torch.tensor([0]), torch.tensor([1]), 0)
    assert (cache.keys, cache.values, cache.capacity, cache.length) == (None, None, 0, 0)
