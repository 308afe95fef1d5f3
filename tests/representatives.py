"""Which position models a law runs on: one of each signature and ten others in turn; all of them with ``-m slow``.

A signature is what a stack, an adapter or a picture can tell of a model: where it acts, which terms it fills in, in
which form (``Lookup``, ``Toeplitz``, ``SparsePairs``, ``Tensor``), whether it learns, and whether a decoder may use it.
Families do not matter: a model that acts elsewhere than its sisters is a representative of its own. ::

    @pytest.mark.parametrize("name", few(NAMES))

The quick tests run a law on the first model of each signature, and on ten others, which change every day: in turn, so
that each is met within days. The head of a run says which ten; ``--others NUMBER`` repeats them. The other cases have
the mark ``slow``. What a model claims of itself (``tests/positions/test_registry.py``) is
measured for all, but for how far it reaches.

A model that no row names represents itself: a new one is tested everywhere, and nothing is to be edited here.
``tests/test_representatives.py`` checks the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date
from typing import Any

import pytest

__all__ = ["ALIKE", "COUNT", "KINDS", "few", "fewer", "in_turn", "leave_out_slow", "only", "take_turn"]

ALIKE: tuple[str, ...] = (
    "abs-scalar diet-abs segment-bias",
    "alibi sandwich",
    "rotary axial-rotary axial-rotary-3d fope llama3 longrope mrope ntk-aware ntk-by-parts position-interpolation "
    "randomised rotary-half xpos yarn",
    "dwivedi signnet b-pearl basisnet curvature-profile directed-walks dwivedi-wl electrostatic graph-bert heat-kernel "
    "lap-pe lap-pe-transformer "
    "magnetic-laplacian mose r-pearl rnn rwse stable-expressive stable-expressive-gin timesformer tokengt "
    "tokengt-orf xl-pe",
    "beit swin",
    "sinusoidal cape dagpe fourier mvpe sinusoidal-concatenated sinusoidal-nd spr-abs tpe-onehot",
    "cape-2d graph-bert-survey length-difference length-ratio noisy-length pnat tab-pet",
    "cayley-string harope",
    "mixed-rotary algebraic algebraic-grid circulant-string comrope comrope-ap grape-m liere spe-conv spe-conv-gated "
    "spe-gated spe-sine",
    "grit complex graphormer-gd ppgt san spse",
    "learned continuous language reformer segment-input spherical spherical-harmonics tpe vit vit-2d vivit",
    "t5 convolution diet-rel dufter-rel graformer-survey kerple-log kerple-power rel-scalar t5-causal t5-unshared",
    "convolution-dynamic shaw-keys",
    "deberta-v2 cope disan-block hard-coded-gaussian lspe",
    "dape carope dape-v2 forgetting-attention grape-a path-attention selective-rope stick-breaking",
    "deberta-emd detr-learned",
    "dufter-abs fire",
    "dynamic-ntk circle-rope dinov3-rotary dynamic-interpolation eva-02-rotary longrope-dynamic longrope2 video-rope",
    "floater floater-convolution",
    "floater-input universal",
    "glm-global mlp-bias random-walk-bias rbf-bias",
    "huang-m1 gradformer huang-m2",
    "graphormer graphormer-3d graphormer-gps graphormer-simple",
    "spr-rel lowest-common-ancestor shaw-absolute zhu-cnn zhu-self",
    "sat sat-subgraph",
    "transformer-xl transformer-xl-learnable",
    "zhu-avg zhu-feature zhu-sum",
)
"""Names of models, those of one signature in a row."""

KINDS: tuple[str, ...] = (
    "alibi-causal abs-scalar cayley-string diet-abs-lin disan swin-windows wire",
    "rotary dufter-abs dynamic-ntk floater mixed-rotary tupe-a",
    "alibi beit gkat graformer huang-m1 huang-m3 huang-m4 glm-global glm-local",
    "t5 composite convolution-dynamic convolution-dynamic-key da-transformer deberta tener-survey transformer-xl",
    "shaw code-transformer spr-rel tener",
    "graphormer cai rr spr",
    "sinusoidal cape-2d learned",
    "detr deberta-emd shortformer",
    "exphormer sliding-window",
    "floater-input universal-sinusoidal",
    "zhu-avg peng tupe-r",
)
"""Of these representatives, those that act at the same sites and read the same: units, pairs or listed pairs."""

COUNT = 10
"""How many others a law runs on."""

_ROW = {name: number for number, row in enumerate(ALIKE) for name in row.split()}
_PLACE = {name: place for row in ALIKE for place, name in enumerate(row.split())}
_KIND = {name: row.split()[0] for row in KINDS for name in row.split()}
_turn = date.today().toordinal()
_without_slow = False


def leave_out_slow(leave_out: bool) -> None:
    """Make no slow cases: thousands that are not run take as long to collect as those that are."""
    global _without_slow
    _without_slow = leave_out


def _marked(every: Sequence[Any], quick: Collection[Any]) -> list[Any]:
    """The cases that are not quick have the mark ``slow``, or are left out if there are others."""
    if _without_slow and any(each in quick for each in every):
        return [each for each in every if each in quick]
    return [each if each in quick else pytest.param(each, marks=pytest.mark.slow) for each in every]


def take_turn(number: int | None) -> int:
    """Choose the others by a number; None for that of the day. Returns the number."""
    global _turn
    _turn = date.today().toordinal() if number is None else number
    return _turn


def in_turn(others: Sequence[str], count: int = COUNT) -> list[str]:
    """Some of the others: the next number takes the next ones."""
    start = _turn * count
    return [others[(start + i) % len(others)] for i in range(min(count, len(others)))]


def few(names: Iterable[str], count: int = COUNT) -> list[Any]:
    """Parameters of a law of these models: those that are neither representatives nor among the others are slow.

    Args:
        names: of the models that the law is about.
        count: how many others.
    """
    every = list(names)
    chosen = {_ROW.get(name, name): name for name in sorted(every, key=lambda name: -_PLACE.get(name, 0))}
    others = [name for name in every if name not in chosen.values()]
    quick = {*chosen.values(), *in_turn(others, count)}
    return _marked(every, quick)


def fewer(names: Iterable[str]) -> list[Any]:
    """Parameters of a law that asks only where a model acts and what it reads: one of each row of ``KINDS``.

    Args:
        names: of the models that the law is about.
    """
    every = list(names)
    quick = [name for name in few(every) if isinstance(name, str)]
    chosen = {_KIND.get(name, name): name for name in quick}
    chosen |= {name: name for name in quick if name in chosen}
    return _marked(every, chosen.values())


def only(every: Iterable[Any], *quick: Any) -> list[Any]:
    """Parameters of a law of anything else, of which only these are quick: the others have the mark ``slow``."""
    return _marked(list(every), quick)
