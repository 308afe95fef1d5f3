"""Algebraic positions: an orthogonal matrix for each kind of step, and for a place the product of the steps to it.

A place u has the matrix M_u: q.k becomes (M_u q).(M_v k), and M_u^T M_v is the product of the steps from u to v, since
what the ways to both have in common cancels. W_g = exp(U_g - U_g^T) for each kind g of step, U_g learned; each head has
its own matrices, the same in all layers. (Kogkalidis et al. 2024, and their code.) In a sequence or a grid vectors are
turned step by step, by the binary digits of their places. In a tree each unit has a matrix, which takes d_h times the
memory of the queries, once for all layers.

Stored of U_g is what matters of it: what is above the diagonal of U_g - U_g^T. It starts where W_g turns the channels
2i and 2i + 1 by 10000^(-2 (i div 2) / c), c the number of pairs, where their code starts: every W_g alike.

Their models also multiply scores by 0.98^r, r the distance of two places: ``decay`` = 0.98.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.encodings.distance import UndirectedDistance
from structpe.encodings.order import Order
from structpe.encodings.trees import BranchPath
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import numbers, of_all_pairs, of_whole, offsets
from structpe.positions.places import coordinates
from structpe.positions.rotary_lie import skew
from structpe.positions.tables import distances
from structpe.terms import Terms

__all__ = ["Algebraic", "AlgebraicGrid", "AlgebraicTree", "StepByStep", "UnitMatrices"]

_TRACED_BITS = 20
"""Of a place, while no number may be looked at: places below a million."""


def _cells(params: str) -> Cells:
    return Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params=params)


@dataclass(frozen=True, eq=False)
class StepByStep:
    """The steps to each unit, the last of them first, as steps of one kind or of none at a time.

    Attributes:
        matrices: for each step the matrices of its kinds.
        queries: for each step which kind a unit takes, if any; axes a share the channels of a head equally.
        keys: the same of the keys.
    """

    matrices: Sequence[Float[Tensor, "g h a w w"]]
    queries: Sequence[Bool[Tensor, "g b 1 a n 1"]]
    keys: Sequence[Bool[Tensor, "g b 1 a m 1"]]

    def turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """M_u q and M_v k."""
        return self._moved(q, self.queries), self._moved(k, self.keys)

    def _moved(self, x: Float[Tensor, "b h n d"], taken: Sequence[Tensor]) -> Tensor:
        if not self.matrices:
            return x
        exact = torch.promote_types(x.dtype, torch.float32)  # each step would round the numbers of half precision
        parts = torch.unflatten(x.to(exact), -1, (self.matrices[0].shape[2], -1)).transpose(2, 3)
        with torch.autocast(x.device.type, enabled=False):
            for kinds, which in zip(self.matrices, taken, strict=True):
                before = parts
                for matrix, where in zip(kinds.to(exact), which, strict=True):
                    parts = torch.where(where, before @ matrix.mT, parts)
        return parts.transpose(2, 3).flatten(-2).to(x.dtype)


class _OfSteps(PositionModel):
    """Orthogonal matrices of the kinds of steps.

    Args:
        dims: sizes of the Transformer.
        encodings: of the places.
        kinds: how many matrices a head has.
        axes: equal parts of the channels of a head.
        decay: factor of scores for each step between two units; 1 for none.

    Raises:
        PositionError: the parts are narrower than two channels, or a head does not have as many; a decay of 0, or above
            1.
    """

    def __init__(
        self, dims: Dims, encodings: Sequence[Encoding], kinds: int, axes: int, decay: float, **sizes: int
    ) -> None:
        width = dims.head // axes
        if width < 2 or dims.head % axes:
            raise PositionError(
                f"position model {self.name!r} cuts the {dims.head} channels of a head into {axes} equal parts of 2 or "
                f"more; give heads of width {max(2, width) * axes}, say"
            )
        if not 0 < decay <= 1:
            raise PositionError(
                f"position model {self.name!r} multiplies scores by decay^r; give a decay above 0 and up to 1, such as "
                f"0.98, not {decay}"
            )
        super().__init__(dims, encodings, **sizes)
        self.axes, self.decay = axes, decay
        pairs = torch.arange(width // 2)
        start = torch.zeros(width, width)
        start[2 * pairs, 2 * pairs + 1] = 10000.0 ** (-2 * (pairs // 2) / len(pairs))
        rows, columns = torch.triu_indices(width, width, offset=1)
        self.entries = nn.Parameter(start[rows, columns].repeat(kinds, dims.heads, 1))

    def steps(self) -> Float[Tensor, "g h w w"]:
        """The matrices W_g, float64: their powers and products are rounded once, at the end."""
        made: Tensor = torch.linalg.matrix_exp(skew(self.entries.double(), self.dims.head // self.axes))
        return made

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared


class _OfPlaces(_OfSteps):
    """A matrix of each axis, whose power is the number of the place."""

    def prepare(self, positions: Positions) -> Terms:
        """W^t by the binary digits of t: a place of b digits takes b steps, of W, W^2, W^4, ..."""
        queries, keys = self._places(positions)
        bits, signs = _TRACED_BITS, 2
        if not torch.compiler.is_compiling():
            least, most = (0, 0) if not keys.numel() else tuple(map(int, keys.aminmax()))
            bits, signs = max(-least, most).bit_length(), 1 + (least < 0)
        power, powers = self.steps().transpose(0, 1)[None], []  # (1, h, a, w, w)
        for _ in range(bits):
            powers.append(torch.cat([power, power.mT][:signs]))  # forwards, and backwards for a place below 0
            power = power @ power
        walk = StepByStep(powers, _digits(queries, bits, signs), _digits(keys, bits, signs))
        if self.decay == 1:
            return Terms(maps=(walk.turned,))
        apart = queries[:, :, None] - keys[:, None]
        far = apart.double().square().sum(-1).sqrt().floor()  # of whole numbers, so exact on one axis
        return Terms(maps=(walk.turned,), gate=((self.decay**far)[:, None].to(self.entries.dtype),))

    def _places(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """(b, n, a) of the queries, (b, m, a) of the keys."""
        (encoding,) = self.encodings
        numbers(self.name, encoding, positions[encoding])
        return positions.queries(encoding)[..., None].long(), positions[encoding][..., None].long()


def _digits(places: Tensor, bits: int, signs: int) -> list[Tensor]:
    """For each binary digit (signs, b, 1, a, n, 1) whether it is set, of places from 0 on and of those below."""
    places = places.mT[:, None, :, :, None]
    size, sides = places.abs(), torch.stack([places >= 0, places < 0][:signs])
    return [sides & (size >> bit & 1).bool() for bit in range(bits)]


class Algebraic(_OfPlaces, name="algebraic"):
    """Algebraic positions of a sequence: powers of a learned orthogonal matrix (Kogkalidis et al. 2024).

    (q_i, k_j) -> (W^t q_i, W^s k_j), so that s_ij = q_i.W^(s - t) k_j / sqrt(d_h);  W = exp(U - U^T), U learned.

    W (d_h, d_h) is that of a head, the same in all layers. Any such W is ``rotary`` in another basis, with frequencies
    of its own. (Kogkalidis et al. 2024; their code, ``Sequential``, compared with it in float64.)

    Args:
        dims: sizes of the Transformer.
        encoding: t, a whole number per unit.
        decay: scores are multiplied by decay^|s - t|; 0.98 in their models, 1 for none.

    Raises:
        PositionError: heads of one channel; the encoding does not give a whole number per unit; a decay of 0 or above
            1.
    """

    spec = Spec("kogkalidis2024", "sequence", _cells("d*(dh - 1)//2"))

    def __init__(self, dims: Dims, encoding: Encoding = Order(), decay: float = 1.0) -> None:
        super().__init__(dims, [of_whole(self.name, encoding)], 1, 1, decay)


class AlgebraicGrid(_OfPlaces, name="algebraic-grid"):
    """Algebraic positions of a grid: powers of one learned orthogonal matrix for each axis (Kogkalidis et al. 2024).

    (q_i, k_j) -> (M_i q_i, M_j k_j),  M_i = W_1^(x_i1) + ... + W_a^(x_ia)

    The sum is direct: each axis has an equal part of the channels of a head. Scores depend on the offsets on all axes.
    W_c = exp(U_c - U_c^T), U_c (d_h/a, d_h/a) learned, is that of a head, the same in all layers. (Kogkalidis et al.
    2024; their code, ``Grid``, which reads two axes; compared with it in float64.) A unit without a place, such as a
    class token, is not turned.

    Args:
        dims: sizes of the Transformer.
        encoding: coordinates per unit; a sequence has one axis, the others are 0.
        axes: how many coordinates.
        decay: scores are multiplied by decay^r, r the distance in space, rounded down; 0.98 in their models, 1 for
            none.

    Raises:
        PositionError: the axes do not divide the channels of a head into parts of 2 or more; another number of
            coordinates, or real ones; a decay of 0 or above 1.
    """

    spec = Spec("kogkalidis2024", "grid", _cells("d*(dh//a - 1)//2"))

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), axes: int = 2, decay: float = 1.0) -> None:
        super().__init__(dims, [of_whole(self.name, encoding)], axes, axes, decay, a=axes)

    def _places(self, positions: Positions) -> tuple[Tensor, Tensor]:
        (encoding,) = self.encodings
        keys = coordinates(self.name, encoding, positions[encoding], self.axes)
        return positions.queries(encoding).clamp(min=0).long(), keys.clamp(min=0).long()


class AlgebraicTree(_OfSteps, name="algebraic-tree"):
    """Algebraic positions of a tree: products of learned orthogonal matrices along branches (Kogkalidis et al. 2024).

    (q_i, k_j) -> (M_i q_i, M_j k_j),  M_u = W_b1^T W_b2^T ... W_bn^T, b_1 ... b_n the branches from the root to u.

    In q_i.M_i^T M_j k_j the branches that the two have in common cancel, so that scores depend on the path between
    them: up by W_b, down by W_b^T, for each branch b passed. W_b = exp(U_b - U_b^T), U_b (d_h, d_h) learned, the same
    in all layers. (Kogkalidis et al. 2024; their code, ``Branching``, compared with it in float64.) Each head has its
    own matrices; their code keeps as many, and all heads use the first ones.

    All W_b start equal, as there: an untrained model knows depths only. For the decay their code takes another r, twice
    the steps from the deepest node of the batch to where two paths part; here it is the distance. Paths longer than the
    encoding's depth lose their first steps, and what they share with others does not cancel then: give it the depth of
    the deepest tree.

    Args:
        dims: sizes of the Transformer.
        encoding: paths of branches; its width is the number of matrices of a head.
        decay: scores are multiplied by decay^r, r the number of edges between two units; 0.98 in their models, 1 for
            none.
        distance: r, read only if there is a decay.

    Raises:
        PositionError: heads of one channel; a decay of 0 or above 1.
    """

    spec = Spec("kogkalidis2024", "tree", _cells("n*d*(dh - 1)//2"), note="as far as the depth of the encoding")

    def __init__(
        self,
        dims: Dims,
        encoding: BranchPath = BranchPath(),
        decay: float = 1.0,
        distance: Encoding = UndirectedDistance(),
    ) -> None:
        read = [] if decay == 1 else [of_all_pairs(self.name, distance)]
        super().__init__(dims, [encoding, *read], encoding.width, 1, decay, n=encoding.width)
        self.depth = encoding.depth

    def prepare(self, positions: Positions) -> Terms:
        """A matrix for each unit; while a graph is traced, steps, whose number does not depend on the batch."""
        queries, keys = (
            read(self.encodings[0]).unflatten(-1, (self.depth, -1)) > 0
            for read in (positions.queries, positions.__getitem__)
        )
        matrices = self.steps().mT.to(torch.promote_types(self.entries.dtype, torch.float32))
        if torch.compiler.is_compiling():  # the last branch to a unit is the first step of its vector
            steps = (list(taken.permute(2, 3, 0, 1)[:, :, :, None, None, :, None]) for taken in (queries, keys))
            turn = StepByStep([matrices[:, :, None]] * self.depth, *steps).turned
        else:
            of_keys = _along(keys, matrices)
            same = queries.shape == keys.shape  # then they are the same units
            turn = UnitMatrices(of_keys if same else _along(queries, matrices), of_keys).turned
        if self.decay == 1:
            return Terms(maps=(turn,))
        apart = offsets(self.name, self.encodings[1], positions[self.encodings[1]])
        return Terms(maps=(turn,), gate=(apart.map(self._factors).share(),))

    def _factors(self, values: Tensor) -> Tensor:
        far = distances(self.name, self.encodings[1], values)
        return (self.decay ** far.double())[:, None].to(self.entries.dtype)


@dataclass(frozen=True, eq=False)
class UnitMatrices:
    """A matrix for each query, and for each key; the same if the units are the same."""

    queries: Float[Tensor, "#b n h d d"]
    keys: Float[Tensor, "#b m h d d"]

    def turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """M_u q and M_v k."""
        if self.queries is self.keys and q.shape == k.shape:  # each matrix is read once
            both = _times(self.keys, q, k)
            return both[..., 0], both[..., 1]
        return _times(self.queries, q)[..., 0], _times(self.keys, k)[..., 0]


def _times(matrices: Float[Tensor, "#b n h d d"], *given: Tensor) -> Float[Tensor, "b h n d c"]:
    exact, like = torch.promote_types(given[0].dtype, torch.float32), given[0].dtype
    with torch.autocast(matrices.device.type, enabled=False):
        turned = matrices.to(exact) @ torch.stack(given, dim=-1).to(exact).transpose(1, 2)
    return turned.transpose(1, 2).to(like)


def _along(taken: Bool[Tensor, "b n s k"], matrices: Float[Tensor, "k h d d"]) -> Float[Tensor, "b n h d d"]:
    """The product of the matrices along each path. Each beginning of a path is computed once, as paths share many."""
    branch, real = taken.long().argmax(-1).flatten(0, 1), taken.any(-1).flatten(0, 1)
    lengths = real.sum(-1)
    level = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device).expand(1, *matrices.shape[1:])
    levels, at, first = [level], lengths.new_zeros(len(lengths)), 1
    last = at.clone()  # of each unit: which of the products of all levels is that of its whole path
    for depth in range(int(lengths.max()) if len(lengths) else 0):
        there = (lengths > depth).nonzero()[:, 0]
        step = branch[there, lengths[there] - 1 - depth]  # counted from the root
        codes, which = torch.unique(at[there] * len(matrices) + step, return_inverse=True)
        level = level.index_select(0, codes // len(matrices)) @ matrices.index_select(0, codes % len(matrices))
        levels.append(level)
        at[there], last[there] = which, which + first
        first += len(codes)
    return torch.unflatten(torch.cat(levels).index_select(0, last), 0, taken.shape[:2])
