"""Decoding: greedy, and beam search with a length penalty."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from structpe.errors import ConfigError
from structpe.nn.decoder import State
from structpe.plain.bounds import BEAM, UNITS, bounded

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

    def __post_init__(self) -> None:
        if self.beam < 1 or self.longest < 1 or not 0 <= self.length_penalty < math.inf:
            raise ConfigError(
                f"beam and longest must be 1 or more and the length penalty finite and not negative: {self}"
            )
        bounded(self, "search.", beam=BEAM, longest=UNITS)


@torch.no_grad()
def search(
    step: Callable[[Tensor, State], Tensor], state: State, first: int, last: int, config: SearchConfig
) -> list[list[int]]:
    """The best text of each row of the batch, without its first and last unit.

    Args:
        step: (written (b, 1), state) -> log-probabilities (b, 1, v); updates the state.
        state: initial state of the model, with b rows.
        first, last: ids of <s> and </s>.
        config: beam and length.
    """
    rows, beam = len(state.present), config.beam
    device = state.present.device
    state.select(torch.arange(rows, device=device).repeat_interleave(beam))
    written = torch.full((rows * beam, 1), first, device=device)
    # All beams of a row start equal, so only the first counts; the others would be copies.
    scores = torch.full((rows, beam), -math.inf, device=device)
    scores[:, 0] = 0.0
    ended: list[list[tuple[float, list[int]]]] = [[] for _ in range(rows)]
    for length in range(1, config.longest + 1):
        scores, origin, unit = _expand(step(written[:, -1:], state)[:, -1], scores)
        state.select(origin)
        written = torch.cat([written[origin], unit[:, None]], dim=1)
        scores = _end(written, scores, ended, last, _penalty(length, config), length == config.longest)
        # A finished row is closed: its result must not depend on the other rows of the batch.
        settled = [_settled(done, row, _penalty(length, config)) for done, row in zip(ended, scores, strict=True)]
        scores[torch.tensor(settled, device=device)] = -math.inf
        if all(settled):
            break
    return [max(done, key=lambda text: text[0])[1] for done in ended]


def _expand(log_probabilities: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The ``beam`` best continuations of each row: their scores (rows, beam), the beams they continue, their units."""
    rows, beam = scores.shape
    vocabulary = log_probabilities.shape[-1]
    total = (scores.reshape(-1, 1) + log_probabilities).view(rows, beam * vocabulary)
    best, place = total.topk(beam, dim=-1)
    origin = place // vocabulary + torch.arange(rows, device=scores.device)[:, None] * beam
    return best, origin.flatten(), (place % vocabulary).flatten()


def _end(
    written: Tensor,
    scores: Tensor,
    ended: list[list[tuple[float, list[int]]]],
    last: int,
    penalty: float,
    final: bool,
) -> Tensor:
    """Store finished texts and close their beams."""
    rows, beam = scores.shape
    closing = (written[:, -1] == last).view(rows, beam)
    closing = closing | torch.full_like(closing, final)
    closing = closing & scores.isfinite()
    for row, place in closing.nonzero().tolist():
        text = written[row * beam + place, 1:].tolist()
        ended[row].append((scores[row, place].item() / penalty, text[:-1] if text[-1] == last else text))
    return scores.masked_fill(closing, -math.inf)


def _settled(done: list[tuple[float, list[int]]], scores: Tensor, penalty: float) -> bool:
    """Whether to stop: no beam is open, or as many texts ended as there are beams and no open one scores higher.

    Other toolkits use the same rule. A longer text could still win by the length penalty, but ruling that out would
    take many more steps.
    """
    if not scores.isfinite().any():
        return True
    return len(done) >= len(scores) and max(score for score, _ in done) >= scores.max().item() / penalty


def _penalty(length: int, config: SearchConfig) -> float:
    return float(((5 + length) / 6) ** config.length_penalty)
