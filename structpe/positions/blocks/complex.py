"""Complex embeddings: each word is rotated by its place, at its own frequencies (Wang B. et al. 2020)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Remaining
from structpe.encodings.words import Words
from structpe.errors import PositionError
from structpe.positions import Block, Cells, Dims, Positions, Site, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions.blocks._attention import allowed, joined, split
from structpe.positions.blocks._phases import Parts, attended, turned
from structpe.terms import Terms

__all__ = ["Complex"]


class Complex(Block, name="complex"):
    """Complex embeddings: each word is rotated by its place, at its own frequencies (Wang B. et al. 2020).

    z_t = a_t e^(i t omega_w), w the word at place t; in every layer softmax(|Q K^T| / sqrt(c/h)) V, all complex.

    A complex vector of c = d/2 channels is stored as d real ones: its real parts, then its imaginary parts. The unit
    embeddings are read in the same way: a_t is complex, and its modulus and argument are the r and theta of the
    survey's eq. 8. omega (V, c) are learned, a row for each word of the vocabulary and one, the first, for all others;
    each starts as 10000^(-2 floor(j/2)/c) in channel j. Q = W_q z + b_q and likewise K, V and the output, with real W
    (c, c) and b (c) of each layer, used for real and imaginary parts. Q K^T is the plain product, neither part
    conjugated, so that phases add, and a score is not a function of the offset. (Wang B. et al. 2020, section 3, and
    their code, text classification; survey, eq. 8.)

    As in their code, where the paper differs: the product is not conjugated; places run backwards, the last unit has t
    = 0; for their words theta is 0 (a_t without imaginary part), which here the embeddings may learn. Apart from
    attention, layers see the d numbers as real ones: norms and feed-forward parts mix real and imaginary channels,
    where the authors apply one of each to both. They drop attention weights at random in training, and their second
    layer exchanges real and imaginary parts; this does neither.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        words: the word of each unit.

    Raises:
        PositionError: twice the number of heads does not divide the width.
        UnsupportedTerm: something else than which pairs attend is to act on attention.
    """

    drops = True
    spec = Spec(
        "wang2020",
        "sequence",
        Cells("A", "-", learnable=True, recurring=False, unbound=True, params="V*c + 4*l*c*(c + 1)"),
        table1=Cells("A", "-", learnable=True, recurring=False, unbound=True, params="2*n*d"),
        note="Table 1 counts frequencies and phases of d complex channels; the code has no phases, and a block counts "
        "its projections",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Remaining(), words: Words = Words()) -> None:
        if dims.width % (2 * dims.heads):
            raise PositionError(
                f"position model 'complex' halves the width into real and imaginary parts, each for {dims.heads} "
                f"heads; the width {dims.width} is no multiple of {2 * dims.heads}"
            )
        c = dims.width // 2
        super().__init__(dims, [of_arity(self.name, encoding, 1), words], V=words.size, c=c)
        powers = torch.arange(c, dtype=torch.float64) // 2 * (-2 / c)
        self.frequency = nn.Parameter((10000.0**powers).to(torch.get_default_dtype()).repeat(words.size, 1))
        self.project = nn.ModuleList(nn.ModuleList(nn.Linear(c, c) for _ in range(4)) for _ in range(dims.layers))

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, c) the angle t omega_w of each channel, float32 at least."""
        places, words = (positions.queries(encoding) for encoding in self.encodings)
        frequency = self.frequency.to(torch.promote_types(self.frequency.dtype, torch.float32))
        return numbers(self.name, self.encodings[0], places)[..., None] * frequency[words]

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        real, imaginary = turned(_parts(x.to(prepared.dtype)), prepared)
        return torch.cat([real, imaginary], dim=-1).to(x.dtype)

    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        layer = self.project[site.layer]
        assert isinstance(layer, nn.ModuleList)
        query, key, value, out = layer
        q, k, v = (self._of_heads(projection, _parts(x)) for projection in (query, key, value))
        real, imaginary = attended(q, k, v, allowed(self.name, terms, x), site.dropout)
        return torch.cat([out(joined(part)) for part in (real, imaginary)], dim=-1), prepared

    def _of_heads(self, projection: nn.Module, parts: Parts) -> Parts:
        real, imaginary = (split(projection(part), self.dims.heads) for part in parts)
        return real, imaginary


def _parts(x: Tensor) -> Parts:
    real, imaginary = x.chunk(2, dim=-1)
    return real, imaginary
