"""Longer and deeper inputs than those of training, with position models that have learned the short and flat ones.

A model that fails on the inputs that it was trained for says nothing about generalisation. So these tasks have enough
steps for most models to learn them, and a model below ``ENOUGH`` percent in distribution is ranked with nobody.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import data
from data import IGNORED, Example
from results import Results, read
from tasks import Scan
from torch import Tensor

__all__ = ["CHOSEN", "ENOUGH", "LONGER", "made"]

ENOUGH = 95
"""Percent of examples in distribution that must be right, in the mean over seeds."""
MARK, END = "=", "."
"""Between the input and what is asked for, and after it. Meanings of COGS have "=" too; the first one is the mark."""
CHOSEN = ("nope", "learned", "sinusoidal", "rnn", "rotary", "xpos", "alibi-causal", "t5-causal", "kerple-log", "fire")
CHOSEN += ("shaw", "transformer-xl", "deberta", "cope", "randomised", "forgetting-attention")
"""Models that are compared: those of sequences that are cited most, and newer ones that are said to generalise."""


class ScanLength(Scan):
    """SCAN's length split again: trained until it is learned.

    The last score forbids the end mark and does not ask for it (Newman et al. 2020, "The EOS decision and length
    extrapolation"): can the actions be found, if something else says where to stop?
    """

    name, steps, batch, longest = "scan-length", 3000, 64, 1200
    better: ClassVar = {"up to 22 actions": "more", "24 to 48": "more", "24 to 48, end given": "more"}

    def tests(self) -> dict[str, Sequence[Example]]:
        short, long = super().tests().values()
        return dict(zip(self.better, (short, long, [without_end(each) for each in long]), strict=True))

    def score(self, outs: Sequence[Tensor], examples: Sequence[Example]) -> float:
        """Percent of texts of which each asked word is the likeliest."""
        pairs = zip(outs, examples, strict=True)
        return super().score([self._no_end(out) if x.target[-1] == IGNORED else out for out, x in pairs], examples)

    def _no_end(self, out: Tensor) -> Tensor:
        out = out.clone()
        out[:, self._numbers[END]] = float("-inf")
        return out


class Cogs(ScanLength):
    """COGS (Kim and Linzen 2020): meanings of sentences, in the form without variables of Qiu et al. 2022.

    ``words``: the 18 kinds of test sentences that have a known word in a new place; ``structures``: the three that are
    deeper than any of training, or have a known phrase in a new place. Scored on the first 100 of each kind.
    """

    name, steps, length = "cogs", 3000, 72
    better: ClassVar = {"in distribution": "more", "words": "more", "structures": "more"}
    deeper: ClassVar = {"cp_recursion", "pp_recursion", "obj_pp_to_subj_pp"}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        texts = [text for split in ("train", "test", "gen") for *text, _ in data.cogs(self.corpora, split)]
        words = sorted({word for sentence, meaning in texts for word in (*sentence, *meaning)} - {MARK, END})
        return {word: i for i, word in enumerate([MARK, END, *words])}

    @cached_property
    def train(self) -> Sequence[Example]:
        return [self._text(*text) for *text, _ in data.cogs(self.corpora, "train")]

    def tests(self) -> dict[str, Sequence[Example]]:
        known = [self._text(*text) for *text, _ in data.cogs(self.corpora, "test")]
        random.Random(0).shuffle(known)
        kinds: dict[str, list[Example]] = {}
        for *text, kind in data.cogs(self.corpora, "gen"):
            kinds.setdefault(kind, []).append(self._text(*text))
        parts = [[kind for kind in kinds if (kind in self.deeper) == deep] for deep in (False, True)]
        words, deeper = ([x for kind in part for x in kinds[kind][:100]] for part in parts)
        return dict(zip(self.better, (known[:500], words, deeper), strict=True))

    def _text(self, sentence: list[str], meaning: list[str]) -> Example:
        return data.as_text([word for word in sentence if word != END], meaning, self._numbers)


def without_end(example: Example) -> Example:
    """The same, where the last word is not asked for."""
    target = example.target.copy()
    target[-1] = IGNORED
    return Example(example.structure, example.units, target)


LONGER = {task.name: task for task in (ScanLength, Cogs)}


def made(found: Results | None = None) -> str:
    """A table for each task that has results, best first; those that have not learned it last, ranked with nobody."""
    found = read() if found is None else found
    return "\n\n".join(_table(task, found[name]) for name, task in LONGER.items() if found[name])


def _table(task: type[Scan], models: dict[str, list[dict[str, Any]]]) -> str:
    columns = list(task.better)
    rows = {model: [run for run in runs if "scores" in run] for model, runs in models.items()}
    means = {m: [_mean([run["scores"][c] for run in runs]) for c in columns] for m, runs in rows.items() if runs}
    ranked = sorted(means, key=lambda m: (means[m][0] < ENOUGH, len(rows[m]) < 3, -(means[m][1] or 0), m))
    lines = [f"| {task.name} | seeds | " + " | ".join(columns) + " | parameters of positions | CPU minutes | commit |"]
    lines.append("|---" + "|--:" * (len(columns) + 3) + "|---|")
    for model in ranked:
        runs = rows[model]
        cells = [_cell([run["scores"][c] for run in runs]) for c in columns]
        note = " (not learned)" if means[model][0] < ENOUGH else "" if len(runs) > 2 else " (not ranked)"
        commits = ", ".join(sorted({run["commit"] for run in runs}))
        minutes = _mean([run["cpu minutes"] for run in runs])
        cost = "-" if minutes is None else f"{minutes:.1f}"
        row = [model + note, str(len(runs)), *cells, f"{runs[0]['parameters']:,}", cost, commits]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _mean(values: list[float | None]) -> float | None:
    return None if None in values else statistics.mean(values)


def _cell(values: list[float | None]) -> str:
    if None in values:
        return "-"
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"
