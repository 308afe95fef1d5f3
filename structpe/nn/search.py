"""Decoding: greedy, and beam search with a length penalty."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor

from structpe.nn.decoder import DecoderState
from structpe.plain.options import BEAM, UNITS, Inert, bounded, refuse_inert

__all__ = ["SearchConfig", "search"]


@dataclass(frozen=True)
class SearchConfig:
    """Options of decoding.

    Args:
        beam: number of texts kept at each step; 1 is greedy.
        length_penalty: a in ((5 + length) / 6)^a, by which a text's log-probability is divided (Wu et al. 2016); the
            length counts the end of the text. Chen et al. 2021 translate with beam 10 and a = 0.6.
        longest: maximum length of a text, in units.
    """

    beam: int = 5
    length_penalty: float = 0.6
    longest: int = 128

    inert: ClassVar[tuple[Inert, ...]] = (
        Inert(("length_penalty",), "search.beam is 1 and there is only one text", lambda c: c.beam == 1),
    )

    def __post_init__(self) -> None:
        bounded(self, "search.", beam=(1, BEAM), longest=(1, UNITS), length_penalty=(0, math.inf))
        refuse_inert(self, "search.")


@torch.no_grad()
def search(
    step: Callable[[Tensor, DecoderState], Tensor], state: DecoderState, first: int, last: int, config: SearchConfig
) -> list[list[int]]:
    """The best text of each row of the batch, without its first and last unit.

    All texts of all rows take each step together. A row whose text is found leaves the batch.

    Args:
        step: (written (b, 1), state) -> log-probabilities (b, 1, v); updates the state.
        state: initial state of the model, with b rows.
        first, last: ids of <s> and </s>; an id that no unit has for ``last`` lets each text be of the longest length.
        config: beam and length.
    """
    rows, beam = len(state.present), config.beam
    device = state.present.device
    state.repeat(beam)
    written = torch.full((rows * beam, 1), first, device=device)
    # All beams of a row start equal, so only the first counts; the others would be copies.
    scores = torch.full((rows, beam), -math.inf, device=device)
    scores[:, 0] = 0.0
    ended: list[_Ended] = [[] for _ in range(rows)]
    open_ = list(range(rows))
    for length in range(1, config.longest + 1):
        scores, origin, unit = _expand(step(written[:, -1:], state)[:, -1], scores)
        if beam > 1:
            state.go_on(origin, written)
            written = written.index_select(0, origin)
        written = torch.cat([written, unit[:, None]], dim=1)
        final, penalty = length == config.longest, float(((5 + length) / 6) ** config.length_penalty)
        scores = _end(written, scores, [ended[row] for row in open_], last, penalty, final)
        closed = [_settled(ended[row], mine, penalty) for row, mine in zip(open_, scores.tolist(), strict=True)]
        if all(closed):
            break
        if any(closed):
            open_, scores, written = _leave(closed, open_, scores, written, state)
    return [max(done, key=lambda text: text[0])[1] for done in ended]


_Ended: TypeAlias = "list[tuple[float, list[int]]]"
"""The finished texts of a row, each with its score."""


def _expand(log_probabilities: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The ``beam`` best continuations of each row: their scores (rows, beam), the beams they continue, their units."""
    rows, beam = scores.shape
    vocabulary = log_probabilities.shape[-1]
    total = (scores.reshape(-1, 1) + log_probabilities).view(rows, beam * vocabulary)
    best, place = total.topk(beam, dim=-1)
    origin = place // vocabulary
    if beam > 1:
        order = torch.tensor([_in_place(each) for each in origin.tolist()], device=scores.device)
        best, place, origin = (each.gather(1, order) for each in (best, place, origin))
    origin = origin + torch.arange(rows, device=scores.device)[:, None] * beam
    return best, origin.flatten(), (place % vocabulary).flatten()


def _in_place(origin: list[int]) -> list[int]:
    """An order of continuations in which each continued beam keeps its place: its cache need not be copied."""
    order, others = [-1] * len(origin), []
    for number, beam in enumerate(origin):
        if order[beam] < 0:
            order[beam] = number
        else:
            others.append(number)
    return [number if number >= 0 else others.pop() for number in order]


def _end(written: Tensor, scores: Tensor, ended: list[_Ended], last: int, penalty: float, final: bool) -> Tensor:
    """Store finished texts and close their beams."""
    if not final and last not in written[:, -1].tolist():
        return scores
    rows, beam = scores.shape
    closing = scores.isfinite() if final else (written[:, -1] == last).view(rows, beam) & scores.isfinite()
    for row, place in closing.nonzero().tolist():
        text = written[row * beam + place, 1:].tolist()
        ended[row].append((scores[row, place].item() / penalty, text[:-1] if text[-1] == last else text))
    return scores.masked_fill(closing, -math.inf)


def _settled(done: _Ended, scores: list[float], penalty: float) -> bool:
    """Whether to stop: no beam is open, or as many texts ended as there are beams and no open one scores higher.

    Other toolkits use the same rule. A longer text could still win by the length penalty, but ruling that out would
    take many more steps.
    """
    best = max(scores)
    if best == -math.inf:
        return True
    return len(done) >= len(scores) and max(score for score, _ in done) >= best / penalty


def _leave(
    closed: list[bool], rows: list[int], scores: Tensor, written: Tensor, state: DecoderState
) -> tuple[list[int], Tensor, Tensor]:
    """The rows that are not closed, with their scores and texts. Removes the others from the state."""
    left = [place for place, gone in enumerate(closed) if not gone]
    kept, beam = torch.tensor(left, device=scores.device), scores.shape[1]
    state.select(kept)
    texts = written.view(len(closed), beam, -1).index_select(0, kept).flatten(0, 1)
    return [rows[place] for place in left], scores.index_select(0, kept), texts
