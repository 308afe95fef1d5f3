"""Search against the enumeration of all texts, and against choosing the best unit without a cache."""

from __future__ import annotations

import itertools
import math
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch import Tensor

from structpe.data.batch import Batch, EdgeTypes
from structpe.errors import ConfigError
from structpe.nn.decoder import DecoderState
from structpe.nn.search import SearchConfig, _in_place, search
from structpe.nn.seq2seq import EncoderDecoder, TransformerConfig
from structpe.positions import MODELS
from structpe.structure import path
from tests.representatives import only

FIRST, LAST, VOCABULARY = 0, 1, 5
close = partial(torch.testing.assert_close, rtol=1e-6, atol=1e-6)
CONFIG = TransformerConfig(width=8, heads=2, encoder_layers=1, decoder_layers=2, feedforward=16, dropout=0.0)


@pytest.fixture(scope="module", params=[(False, 5), (True, 5), (False, 6)], ids=["short", "copying", "long"])
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    """Random; of the first two the best texts are short, or long where the penalty has it so, of the third long."""
    copying, seed = request.param
    return made(copying, seed)


def made(copying: bool, seed: int) -> EncoderDecoder:
    torch.manual_seed(seed)
    config = TransformerConfig(**{**vars(CONFIG), "copy_units": copying})
    positions = [MODELS["sinusoidal"](config.dims(side)) for side in ("encoder", "decoder")]
    return EncoderDecoder(config, VOCABULARY, *positions).double().eval()


def batch(*texts: list[int]) -> Batch:
    """Texts as sources, the shortest first, as a batch has them."""
    return _batch(tuple(map(tuple, texts)))


@cache
def _batch(texts: tuple[tuple[int, ...], ...]) -> Batch:
    assert sorted(texts, key=len) == list(texts)
    encodings = MODELS["sinusoidal"](CONFIG.dims("encoder")).encodings
    made = Batch.of([path([""] * len(text)) for text in texts], encodings, EdgeTypes())
    return made.replaced(x=torch.tensor([unit for text in texts for unit in text]))


def found(model: EncoderDecoder, source: Batch, config: SearchConfig) -> list[list[int]]:
    with torch.no_grad():
        return search(model.step, model.start(source), FIRST, LAST, config)


def next_units(model: EncoderDecoder, source: list[int], *written: list[int]) -> Tensor:
    """Log-probabilities after texts of one length, computed from their beginning and without a cache."""
    with torch.no_grad():
        many = model.start(batch(*[source] * len(written)))
        return model.step(torch.tensor([[FIRST, *text] for text in written]), many)


def best_of_all(model: EncoderDecoder, source: list[int], longest: int, penalty: float) -> list[int]:
    """The best text, by looking at every one there is."""
    scored = []
    for length in range(longest + 1):
        texts = list(itertools.product([u for u in range(VOCABULARY) if u != LAST], repeat=length))
        units = torch.tensor([[FIRST, *text, *[LAST] * (length < longest)] for text in texts])
        with torch.no_grad():
            rows = model.step(units[:, :-1], model.start(batch(*[source] * len(texts))))
        totals = rows.gather(-1, units[:, 1:, None]).sum(dim=(1, 2)) / ((4 + units.shape[1]) / 6) ** penalty
        scored += [(total, list(text)) for total, text in zip(totals.tolist(), texts, strict=True)]
    return max(scored)[1]


def plain_beam_search(model: EncoderDecoder, source: list[int], config: SearchConfig) -> list[int]:
    """Beam search over lists, each text computed from its beginning."""
    open_, ended = [(0.0, list[int]())], list[tuple[float, list[int]]]()
    for length in range(1, config.longest + 1):
        penalty = ((5 + length) / 6) ** config.length_penalty
        longer = []
        rows = next_units(model, source, *(text for _, text in open_))[:, -1].tolist()
        for (total, text), following in zip(open_, rows, strict=True):
            longer += [(total + more, [*text, unit]) for unit, more in enumerate(following)]
        longer = sorted(longer, reverse=True)[: config.beam]
        ended += [(total / penalty, text[:-1]) for total, text in longer if text[-1] == LAST]
        open_ = [(total, text) for total, text in longer if text[-1] != LAST]
        if not open_ or (len(ended) >= config.beam and max(ended)[0] >= open_[0][0] / penalty):
            return max(ended)[1]
    return max(ended + [(total / penalty, text) for total, text in open_])[1]


@pytest.mark.parametrize("penalty", only([0.0, 0.6, 3.0], 0.0, 3.0))
def test_a_beam_that_holds_everything_finds_the_best_of_all_texts(model: EncoderDecoder, penalty: float) -> None:
    longest = 3
    config = SearchConfig(beam=VOCABULARY**longest, length_penalty=penalty, longest=longest)
    sources = [[4], [2, 3], [3, 3, 2, 4]]
    best = [best_of_all(model, source, longest, penalty) for source in sources]
    assert [found(model, batch(source), config)[0] for source in sources] == best
    assert found(model, batch(*sources), config) == best


def test_the_length_penalty_makes_texts_longer() -> None:
    lengths = [len(best_of_all(made(False, 5), [2, 3], 3, penalty)) for penalty in (0.0, 0.6, 3.0)]
    assert lengths == [0, 1, 3]


@pytest.mark.parametrize("beam", only([2, 3, 6], 3, 6))
@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_beams_go_on_from_their_own_beginnings(model: EncoderDecoder, beam: int, penalty: float) -> None:
    config = SearchConfig(beam=beam, length_penalty=penalty, longest=6)
    sources = [[4], [2, 3], [3, 3, 2, 4]]
    expected = [plain_beam_search(model, source, config) for source in sources]
    assert found(model, batch(*sources), config) == expected


@pytest.mark.parametrize("beam", only([2, 4], 4))
def test_at_each_step_every_beam_remembers_its_own_text(
    model: EncoderDecoder, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a step says of each beam, and what it would say had the beam's text been written from its beginning."""
    sources = [[4], [2, 3], [3, 3, 2, 4]]
    written = [[source, list[int]()] for source in sources]
    moved, sizes, select, repeat, go_on = [], [], DecoderState.select, DecoderState.repeat, DecoderState.go_on

    def step(units: Tensor, state: DecoderState) -> Tensor:
        sizes.append(len(units))
        for (_, text), unit in zip(written, units[:, 0].tolist(), strict=True):
            text.append(unit)
        found = model.step(units, state)
        for source in sources:
            rows = [row for row, (theirs, _) in enumerate(written) if theirs is source]
            if rows:
                expected = next_units(model, source, *(written[row][1][1:] for row in rows))[:, -1]
                close(found[rows, 0], expected)  # log-probabilities are float32
        return found

    def follow(rows: list[int]) -> None:
        written[:] = [[source, list(text)] for source, text in (written[row] for row in rows)]

    def repeated(state: DecoderState, texts: int) -> None:
        follow([row for row in range(len(written)) for _ in range(texts)])
        repeat(state, texts)

    def selected(state: DecoderState, rows: Tensor) -> None:
        follow([row * beam + number for row in rows.tolist() for number in range(beam)])
        select(state, rows)

    def gone_on(state: DecoderState, rows: Tensor, texts: Tensor) -> None:
        moved.append(rows.tolist() != list(range(len(rows))))
        assert texts.tolist() == [text for _, text in written]
        follow(rows.tolist())
        go_on(state, rows, texts)

    monkeypatch.setattr(DecoderState, "repeat", repeated)
    monkeypatch.setattr(DecoderState, "select", selected)
    monkeypatch.setattr(DecoderState, "go_on", gone_on)
    with torch.no_grad():
        search(step, model.start(batch(*sources)), FIRST, LAST, SearchConfig(beam=beam, longest=5))
    assert any(moved), "no beam went on from another, so that nothing was tested"
    assert sizes[0] == 3 * beam
    assert sizes == sorted(sizes, reverse=True)


def test_one_beam_is_greedy(model: EncoderDecoder) -> None:
    for source in ([2, 3], [4], [3, 3, 2, 4]):
        text: list[int] = []
        while len(text) < 12 and (unit := int(next_units(model, source, text)[0, -1].argmax())) != LAST:
            text.append(unit)
        assert found(model, batch(source), SearchConfig(beam=1, longest=12)) == [text]


def test_a_step_with_a_cache_is_the_last_row_of_the_full_computation(model: EncoderDecoder) -> None:
    source, text = [2, 3, 4], [4, 2, 2, 3, 4, 0]
    (whole,) = next_units(model, source, text)
    with torch.no_grad():
        state = model.start(batch(source))
        steps = [model.step(torch.tensor([[unit]]), state)[0, 0] for unit in [FIRST, *text]]
    close(torch.stack(steps), whole)  # log-probabilities are float32


@pytest.mark.parametrize("beam", [1, 2])
def test_a_row_whose_text_is_found_leaves_the_batch(beam: int) -> None:
    """Greedy texts of these sources end at different steps; afterwards fewer texts are computed."""
    model, sources, sizes = made(False, 26), [[4], [2, 3], [3, 3, 2, 4]], []

    def step(units: Tensor, state: DecoderState) -> Tensor:
        sizes.append(len(units))
        return model.step(units, state)

    config = SearchConfig(beam=beam, longest=12)
    with torch.no_grad():
        texts = search(step, model.start(batch(*sources)), FIRST, LAST, config)
    assert texts == [found(model, batch(source), config)[0] for source in sources]
    assert sizes[0] == 3 * beam
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]


@pytest.mark.parametrize("origin", [[0, 1, 2], [2, 2, 2], [1, 1, 0], [2, 0, 2], [0]])
def test_a_beam_that_goes_on_keeps_its_place(origin: list[int]) -> None:
    order = _in_place(origin)
    assert sorted(order) == list(range(len(origin)))
    assert all(origin[order[beam]] == beam for beam in set(origin))


@pytest.mark.parametrize("beam", only([1, 2, 4], 1, 4))
def test_rows_do_not_see_one_another(model: EncoderDecoder, beam: int) -> None:
    sources, config = [[4], [2, 3], [3, 3, 2, 4]], SearchConfig(beam=beam, longest=6)
    assert found(model, batch(*sources), config) == [found(model, batch(s), config)[0] for s in sources]


@pytest.mark.parametrize("copying", [False, True])
def test_no_text_is_longer_than_asked_for(copying: bool) -> None:
    model = made(copying, 5)
    model.embedding.weight.data[LAST] = -10 * model.embedding.weight.data.sum(0)  # hard to end
    texts = found(model, batch([4], [2, 3]), SearchConfig(beam=3, longest=4))
    assert all(len(text) <= 4 and LAST not in text for text in texts)


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"beam": 0}, "is 0; it must be 1 or more"),
        ({"longest": 0}, "is 0; it must be 1 or more"),
        ({"length_penalty": -0.1}, "is -0.1; it must be 0 or more"),
        ({"length_penalty": math.nan}, "is nan; it must be a finite number"),
    ],
)
def test_what_cannot_be_searched_with(wrong: dict[str, Any], rule: str) -> None:
    (name,) = wrong
    with pytest.raises(ConfigError, match=f"^search.{name} {rule}$"):
        SearchConfig(**wrong)
