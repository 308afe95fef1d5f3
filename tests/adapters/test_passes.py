"""One model in several threads: what was made for a pass is that pass's own, in every library; and so is eval()."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, GPSConv, TransformerConv

from structpe import encode
from structpe.adapters import inject, pyg, transformers
from structpe.adapters._injection import _generator_states, _with_same_draws
from structpe.adapters._passes import Passes
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, build
from structpe.structure import Structure
from tests.adapters.models import small, texts
from tests.adapters.vision import vit

EDGES: list[Any] = [[(0, 1), (0, 2), (2, 3)], [(0, 1), (1, 2), (2, 3)]]
GRAPHS = [Structure(("a", "b", "c", "d"), edges, root=0) for edges in EDGES]
DISTANCES = {"name": "t5-unshared", "encoding": "undirected-distance"}
Call = Callable[[int], torch.Tensor]


def drawn(position: nn.Module) -> None:
    with torch.no_grad():
        for each in position.parameters():
            each.copy_(torch.randn(each.shape, generator=torch.Generator().manual_seed(3)))


def of_pytorch() -> tuple[Any, Call]:
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    position = build(DISTANCES, Dims(8, 2, 2))
    inject(model, position, start="own")
    given = [encode([each], position.encodings) for each in GRAPHS]
    return model.layers[0].linear1, lambda i: model(torch.ones(1, 4, 8).cumsum(1), structpe=given[i])


def of_pyg(layer: Any, inner: str) -> tuple[Any, Call]:
    torch.manual_seed(0)
    conv: Any = layer().eval()
    position = build(DISTANCES, Dims(8, 2, 1))
    handle = inject(conv, position, start="own")
    both = [torch.tensor(edges).T for edges in EDGES]
    data = [Data(x=torch.eye(4, 8), edge_index=torch.cat([each, each.flip(0)], dim=1)) for each in both]
    batches = [next(iter(DataLoader(pyg.AddEncoding(*position.encodings).many([each])))) for each in data]  # type: ignore[arg-type]

    def call(i: int) -> torch.Tensor:
        with handle.reading(batches[i]):
            found: torch.Tensor = conv(batches[i].x, batches[0].edge_index)
        return found

    return conv.get_submodule(inner), call


def of_timm() -> tuple[Any, Call]:
    model = vit("form")
    inject(model, "t5", start="own")
    sizes = [(1, 3, 16, 16), (1, 3, 8, 32)]
    return model.blocks[0].norm1, lambda i: model(torch.ones(sizes[i]).cumsum(-1))


def of_transformers(writes: bool) -> tuple[Any, Call]:
    model = small("t5")
    position = inject(model, DISTANCES, start="own").position
    batch = {key: each[:1] for key, each in texts(model).items()}
    units = [[0, 1, 2, 3, -1, -1, -1, -1]]
    given = [transformers.TokenPositions.of([each], units, position.encodings) for each in GRAPHS]

    def call(i: int) -> torch.Tensor:
        if not writes:
            found: torch.Tensor = model(**batch, structpe=given[i]).logits
            return found
        ids = batch["input_ids"]
        options = {"max_new_tokens": 3, "return_dict_in_generate": True, "output_logits": True, "use_cache": False}
        return torch.stack(model.generate(ids, structpe=given[i], do_sample=False, **options).logits)

    return model.encoder.block[0].layer[1], call


LIBRARIES: dict[str, Callable[[], tuple[Any, Call]]] = {
    "pytorch": of_pytorch,
    "GPSConv": lambda: of_pyg(lambda: GPSConv(8, GINConv(nn.Linear(8, 8)), heads=2), "conv"),
    "TransformerConv": lambda: of_pyg(lambda: TransformerConv(8, 4, 2), "lin_value"),
    "timm": of_timm,
    "transformers": lambda: of_transformers(False),
    "generate": lambda: of_transformers(True),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_pass_that_is_in_the_midst_of_another_ones_changes_nothing(library: str) -> None:
    inner, call = LIBRARIES[library]()
    with torch.no_grad():
        for each in (m for m in inner.modules() if isinstance(m, PositionModel)):
            drawn(each)
        right = [call(0), call(1)]
    assert right[0].shape != right[1].shape or not torch.allclose(*right)
    reached, goes_on, found = threading.Event(), threading.Event(), []

    def pause(*_: Any) -> None:
        if threading.current_thread() is first and not reached.is_set():
            reached.set()
            assert goes_on.wait(20)

    def work() -> None:
        with torch.no_grad():
            found.append(call(0))

    first = threading.Thread(target=work)
    inner.register_forward_hook(pause)
    first.start()
    assert reached.wait(20)
    with torch.no_grad():
        second = call(1)
    goes_on.set()
    first.join(20)
    assert torch.equal(second, right[1])
    assert torch.equal(found[0], right[0])
    with torch.no_grad():
        assert torch.equal(call(1), right[1])


def test_passes_are_of_one_thread_and_the_innermost_is_known() -> None:
    passes, others = Passes[int](), Passes[int]()
    passes.begin(1)
    passes.begin(2)
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(passes.known()))
    thread.start()
    thread.join()
    assert (passes.known(), others.known(), seen) == (2, None, [None])
    others.end()  # of a pass whose beginning failed
    passes.end()
    assert passes.known() == 1
    passes.end()
    assert passes.known() is None


@pytest.mark.parametrize("training", [True, False])
def test_what_is_put_into_a_model_in_eval_is_in_eval(training: bool) -> None:
    spectral: Any = {"name": "dwivedi", "encoding": {"name": "laplacian", "k": 2}}
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).train(training)
    inject(encoder, build(spectral, Dims(8, 2, 2)), start="own")
    conv = GPSConv(8, None, heads=2).train(training)
    inject(conv, build(DISTANCES, Dims(8, 2, 1)), start="own")
    image = vit("form").train(training)
    inject(image, "vit")
    bert = small("bert").train(training)
    inject(bert, spectral)
    for model in (encoder, conv, image, bert):
        assert {each.training for each in model.modules()} == {training}, type(model).__name__


def test_a_position_model_of_eval_draws_nothing_at_random() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    position = build({"name": "dwivedi", "encoding": {"name": "laplacian", "k": 2}}, Dims(8, 2, 2))
    inject(encoder, position, start="own")
    given, x = encode(GRAPHS[:1], position.encodings), torch.ones(1, 4, 8)
    calls = [encoder(x, structpe=given) for _ in range(8)]
    assert all(torch.equal(each, calls[0]) for each in calls)


class Again(nn.Module):
    """A layer that is computed again when gradients are."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer, self.self_attn = layer, layer.self_attn

    def forward(self, *given: Any, **named: Any) -> Any:
        return checkpoint(self.layer, *given, use_reentrant=False, **named)


def test_layers_of_pytorch_that_were_wrapped_before_are_computed_again_with_their_positions() -> None:
    grads = []
    for again in (False, True):
        torch.manual_seed(0)
        encoder: Any = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2)
        if again:
            encoder.layers = nn.ModuleList(map(Again, encoder.layers))
        position = build(DISTANCES, Dims(8, 2, 2))
        drawn(position)
        inject(encoder, position, start="own")
        losses = [
            encoder(torch.eye(4, 8)[None], structpe=encode([g], position.encodings)).pow(2)[..., 0].sum()
            for g in GRAPHS
        ]
        sum(losses).backward()  # both, after both passes
        grads.append(position.get_parameter("table.weight").grad)
    assert grads[0].abs().max() > 0
    torch.testing.assert_close(*grads)


def test_a_layer_of_pytorch_outside_of_its_encoder_says_what_to_do() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    inject(encoder, build(DISTANCES, Dims(8, 2, 2)), start="own")
    with pytest.raises(PositionError, match=r"called by itself, where it knows no positions.*wrap them before inject"):
        encoder.layers[0](torch.ones(1, 4, 8))


@pytest.mark.parametrize("layer", [lambda: GPSConv(8, None, heads=2), lambda: TransformerConv(8, 4, 2)])
def test_layers_of_pyg_are_computed_again_while_their_batch_is_read(layer: Any) -> None:
    grads = []
    for again in (False, True):
        torch.manual_seed(0)
        conv, position = layer(), build(DISTANCES, Dims(8, 2, 1))
        drawn(position)
        handle = inject(conv, position, start="own")
        edges = torch.tensor([*EDGES[0], (1, 0), (3, 0)]).T.contiguous()
        with handle.reading(encode(GRAPHS[:1], position.encodings)):
            given = torch.randn(4, 8, generator=torch.Generator().manual_seed(0)).requires_grad_(), edges
            torch.manual_seed(1)
            out = checkpoint(conv, *given, use_reentrant=False) if again else conv(*given)
            # As on a GPU, where another thread computes gradients.
            thread = threading.Thread(target=out.square()[:, 0].sum().backward)
            thread.start()
            thread.join()
        grads.append(position.get_parameter("table.weight").grad)
    assert grads[0] is not None
    assert grads[0].abs().max() > 0
    torch.testing.assert_close(*grads)


class Told(torch.autograd.Function):
    """The identity; its gradient asks what a pass knows."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, ask: Callable[[], None]) -> torch.Tensor:
        ctx.ask = ask
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        ctx.ask()
        return gradient, None


def test_gradients_of_another_thread_know_a_pass_if_there_is_only_one() -> None:
    """Which of several it belongs to, nobody can tell."""
    passes, seen = Passes[int](), list[int | None]()

    def ask() -> None:
        out = Told.apply(torch.ones(1, requires_grad=True), lambda: seen.append(passes.known()))
        thread = threading.Thread(target=out.sum().backward)
        thread.start()
        thread.join()

    for change in (lambda: None, partial(passes.begin, 1), partial(passes.begin, 2), passes.end, passes.end):
        change()
        ask()
    assert seen == [None, 1, None, 1, None]


def test_what_is_drawn_twice_is_drawn_alike_and_what_follows_as_if_once() -> None:
    def fail() -> None:
        torch.rand(2)
        raise ValueError("made in vain")

    like = torch.ones(1)
    before = _generator_states(like, True)
    drawn_first, after = torch.rand(3), torch.get_rng_state()
    assert torch.equal(_with_same_draws(before, lambda: torch.rand(3), like), drawn_first)
    assert torch.equal(torch.get_rng_state(), after)
    with pytest.raises(ValueError, match="made in vain"):
        _with_same_draws(before, fail, like)
    assert torch.equal(torch.get_rng_state(), after)
