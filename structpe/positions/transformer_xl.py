"""Sinusoids of offsets in attention: Transformer-XL and TENER.

An offset s - t is key minus query, or any other encoding of pairs. A pair without a path has the vector zero: only its
content counts. Two units of one node, k places apart, have the vector of k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from structpe.dropout import Dropout
from structpe.encodings.base import UNREACHABLE, Encoding
from structpe.encodings.order import Offset
from structpe.positions import Dims, Positions, Site, Spec
from structpe.positions.batch import of_all_pairs
from structpe.positions.block import of_layers
from structpe.positions.sinusoids import halves, interleaved, timing
from structpe.positions.tables import BOUND, UNBOUND, PairModel, Rows, everywhere, steps
from structpe.terms import Lookup, Terms

__all__ = ["TENER", "AllPairs", "TENERModel", "TENERSurvey", "TransformerXL", "TransformerXLLearnable"]


class AllPairs(PairModel):
    """A model of an offset for each pair of units.

    Raises:
        PositionError: the encoding lists only some pairs.
    """

    def __init__(self, dims: Dims, encoding: Encoding = Offset()) -> None:
        super().__init__(dims, of_all_pairs(self.name, encoding))

    def sinusoids(
        self, positions: Positions, wave: Callable[[Tensor, int], Tensor], width: int, like: Tensor
    ) -> Lookup:
        """(r, width) the vector of each distinct value; ``wave`` gives those of integers, key minus query."""

        def vectors(values: Tensor) -> Tensor:
            return torch.where((values == UNREACHABLE)[:, None], 0, wave(steps(values), width)).to(like.dtype)

        return self.of_pairs(positions).map(vectors)


class TransformerXL(AllPairs, name="transformer-xl"):
    """Sinusoids of offsets, multiplied with queries through a matrix and with a bias (Dai et al. 2019, Transformer-XL).

    s_ij = ((q_i + u).k_j + (q_i + v).(W R[t - s])) / sqrt(d_h):  content, position, and a bias for each.

    R[r] (d) = cat[sin(r w_c), cos(r w_c)], w_c = 10000^(-2c/d), for c < d/2; t - s is query minus key. W (d, d) without
    bias is of each layer and gives each head its d_h; u and v (h, d_h) are of each head, and the same for all layers.
    (Dai et al. 2019, section 3.3; survey, eq. 12.)

    Sharing u and v over the layers follows the authors' PyTorch code; the paper leaves it open. Table 1 has a factor h
    too many: one W (d, d) serves all heads. Attention there is causal, and the matrix has arbitrary values for keys
    ahead; here these have the R of their negative offset: the model can also be used without a causal mask. To attend
    to an earlier segment, choose which units are queries: ``Positions.step(c, c + n)`` and
    :class:`structpe.nn.language_model.LanguageModel`. Pairs without a path have R = 0.

    Args:
        max_distance: offsets beyond this, either way, count as this far (the code's ``clamp_len``); None for all of
            them.
        dropout: of R.
    """

    spec = Spec(
        "dai2019",
        "sequence",
        UNBOUND("2*d + d*d*l"),
        table1=UNBOUND("2*d + d*d*l*h"),
        note="one matrix serves all heads of a layer, so that the factor h is one too many",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_distance: int | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__(dims, encoding)
        self.max_distance, self.dropout = max_distance, Dropout(dropout)
        self.content, self.position = (nn.Parameter(torch.randn(dims.heads, dims.head) * 0.02) for _ in range(2))
        self.project = of_layers(dims, dims.width, bias=False, std=0.02)

    def prepare(self, positions: Positions) -> Lookup:
        """R (r, d) of each distinct value, once for all layers."""
        return self.sinusoids(positions, self._waves, self.dims.width, self.content).map(self.dropout)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        key = self.project[site.layer](prepared.table).unflatten(-1, (self.dims.heads, self.dims.head))
        bias = (key * self.position).sum(-1) / math.sqrt(self.dims.head)
        return Terms(
            key=(prepared.map(lambda _: key),),
            query=(everywhere(self.content[None], prepared),),
            bias=(prepared.map(lambda _: bias),),
        )

    def _waves(self, after: Tensor, width: int) -> Tensor:
        back = -after
        return halves(back if self.max_distance is None else back.clamp(-self.max_distance, self.max_distance), width)


def _row(after: Tensor, most: int) -> Tensor:
    """clip(-r, 0, most) of the offsets r, key minus query."""
    return (-after).clamp(0, most)


class TransformerXLLearnable(AllPairs, name="transformer-xl-learnable"):
    """Learned vectors and scalars per distance, with Transformer-XL's bias of the content (Dai et al. 2019).

    s_ij = ((q_i + u).k_j + q_i.E[t - s] + b[t - s]) / sqrt(d_h),  the distance t - s clipped to 0..D - 1.

    The ablation of Transformer-XL in its authors' code (``attn_type`` 1), there called the embeddings of Shaw et al.: E
    (D, h, d_h) and b (D, h) are learned instead of W R and v.W R, separately for each layer, as is u (h, d_h).
    Distances of D or more share the last row. It was made for causal attention: keys ahead have the row of distance 0.
    In the code rows run from the farthest distance to 0; here from 0 on. Pairs without a path and units of one node
    have their own rows.

    Args:
        max_length: D, number of distances.
        dropout: of E; b is not dropped.
    """

    spec = Spec(
        "dai2019",
        "sequence",
        BOUND("l*(R*d + d + R*h)"),
        note="Table 1 has only the variant with sinusoids: 'transformer-xl'",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), max_length: int = 512, dropout: float = 0.0) -> None:
        super().__init__(dims, encoding)
        self.rows = Rows(encoding, max_length, partial(_row, most=max_length - 1))
        self.sizes, self.dropout = {"R": self.rows.size}, Dropout(dropout)
        shape = (dims.layers, self.rows.size, dims.heads)
        self.keys = nn.Parameter(torch.randn(*shape, dims.head) * 0.02)
        self.bias = nn.Parameter(torch.randn(shape) * 0.02)
        self.content = nn.Parameter(torch.randn(dims.layers, dims.heads, dims.head) * 0.02)

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each distinct value."""
        return self.of_pairs(positions).map(self.rows.of)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        keys, bias = self.dropout(self.keys[site.layer]), self.bias[site.layer] / math.sqrt(self.dims.head)
        return Terms(
            key=(prepared.map(keys.__getitem__),),
            query=(everywhere(self.content[site.layer][None], prepared),),
            bias=(prepared.map(bias.__getitem__),),
        )


class TENERModel(AllPairs):
    """(q_i + u).k_j + (q_i + v).R[...]: u and v (h, d_h) are of each layer and head; R (d_h) has no matrix."""

    def __init__(self, dims: Dims, encoding: Encoding = Offset()) -> None:
        super().__init__(dims, encoding)
        std = math.sqrt(2 / (dims.heads + dims.head))  # Glorot and Bengio's, as in the code
        shape = (dims.layers, dims.heads, dims.head)
        self.content, self.position = (nn.Parameter(torch.randn(shape) * std) for _ in range(2))


class TENER(TENERModel, name="tener"):
    """Sinusoids of offsets that keep direction, without a matrix, as in TENER's code (Yan et al. 2019).

    s_ij = (q_i + u).k_j + (q_i + v).R[s - t] + k_j.R[t - s],  not divided by sqrt(d_h).

    R[r] (d_h) = cat[sin(r w_c), cos(r w_c)], w_c = 10000^(-c/(d_h/2 - 1)), for c < d_h/2; an odd d_h has a zero after
    them. u and v (h, d_h) are of each layer and head. sin(-r) = -sin(r): keys before and after are distinguished, as no
    matrix mixes the channels of R. (Yan et al. 2019, section 3.2, and their code.)

    As in the code, where the paper and the survey's eq. 22 differ: the last term; s - t where they have t - s; the
    frequencies. Their version is ``tener-survey``. That scores are not scaled is a choice of the paper and part of this
    model; the code has it as an option. It calls u ``r_r_bias`` and v ``r_w_bias``, as if they were Transformer-XL's
    with their names exchanged. Not included, because it does not concern positions: the paper's W_k is the identity,
    while one version of the code learns it; neither has a matrix after the heads. Pairs without a path have R = 0.

    Args:
        scaled: whether all of s_ij is divided by sqrt(d_h).
    """

    spec = Spec(
        "yan2019",
        "sequence",
        UNBOUND("2*d*l"),
        table1=UNBOUND("2*d*l*h"),
        note="u and v of a head have its width d/h, so that the factor h is one too many",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), scaled: bool = False) -> None:
        super().__init__(dims, encoding)
        self.scale = 1.0 if scaled else math.sqrt(dims.head)

    def prepare(self, positions: Positions) -> tuple[Lookup, Lookup]:
        """R (r, d_h) of each distinct value, and of its negative: once for all layers and heads."""
        width = self.dims.head
        after = self.sinusoids(positions, timing, width, self.content)
        return after, self.sinusoids(positions, lambda r, w: timing(-r, w), width, self.content)

    def terms(self, prepared: tuple[Lookup, Lookup], site: Site) -> Terms:
        after, before = prepared
        position = self.position[site.layer] * (self.scale / math.sqrt(self.dims.head))
        return Terms(
            key=(after.map(lambda r: r[:, None]),),
            query=(everywhere(self.content[site.layer][None], after), before.map(lambda r: r[:, None])),
            bias=(after.map(lambda r: r @ position.T),),
            scale=self.scale,
        )


class TENERSurvey(TENERModel, name="tener-survey"):
    """Sinusoids of offsets that keep direction, as TENER's paper and the survey have them (Yan et al. 2019).

    s_ij = (q_i + u).k_j + (q_i + v).R[t - s],  not divided by sqrt(d_h).

    R[r] (d_h) = sin(r w_0), cos(r w_0), sin(r w_1), ..., w_c = 10000^(-2c/d_h); t - s is query minus key. u and v (h,
    d_h) are of each layer and head. (Survey, eqs. 22 and 23; Yan et al. 2019, section 3.2.) The authors' code has one
    more term, the other sign and other frequencies: ``tener``. The survey's W_k is the identity; the projections are
    not part of a position model. Pairs without a path have R = 0.
    """

    spec = Spec(
        "yan2019",
        "sequence",
        UNBOUND("2*d*l"),
        table1=UNBOUND("2*d*l*h"),
        note="u and v of a head have its width d/h, so that the factor h is one too many",
    )

    def prepare(self, positions: Positions) -> Lookup:
        """R (r, d_h) of each distinct value: once for all layers and heads."""
        return self.sinusoids(positions, lambda r, w: interleaved(-r, w), self.dims.head, self.content)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(
            key=(prepared.map(lambda r: r[:, None]),),
            query=(everywhere(self.content[site.layer][None], prepared),),
            bias=(prepared.map(lambda r: r @ self.position[site.layer].T),),
            scale=math.sqrt(self.dims.head),
        )
