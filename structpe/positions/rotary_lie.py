"""Rotations exp(sum_c A_c x_c) of blocks of channels: A_c skew-symmetric, x the coordinates of a unit."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import holds, of_arity
from structpe.positions.by_rows import Ranges, by_rows, cut
from structpe.positions.places import coordinates
from structpe.positions.rotary import Turns, check_even
from structpe.positions.sinusoids import inverse_frequencies
from structpe.terms import Map, Terms

__all__ = [
    "CayleyString",
    "CirculantString",
    "ComRoPE",
    "ComRoPEAP",
    "GridModel",
    "HARoPE",
    "LieModel",
    "LieRE",
    "PairCoordinates",
    "Rotations",
    "block_of",
    "exponential",
    "skew",
]


@dataclass(frozen=True, eq=False)
class PairCoordinates:
    """Coordinates of the queries (b or 1, n, axes) and of the keys (b or 1, m, axes), float64."""

    queries: Tensor
    keys: Tensor


class GridModel(PositionModel):
    """A model of the coordinates of units, c / ``extent`` on each axis. A unit without a place has 0 on each.

    Args:
        dims: sizes of the Transformer.
        encoding: coordinates per unit.
        axes: how many coordinates.
        extent: what coordinates are divided by.
        sizes: see :class:`PositionModel`.
    """

    def __init__(self, dims: Dims, encoding: Encoding, axes: int, extent: float, **sizes: int) -> None:
        if extent <= 0:
            raise PositionError(f"position model {self.name!r} divides coordinates by an extent above 0, not {extent}")
        super().__init__(dims, [of_arity(self.name, encoding, 1)], **sizes)
        self.axes, self.extent = axes, extent

    def prepare(self, positions: Positions) -> PairCoordinates:
        """The coordinates; once for all structures of a batch where these have the same, as images of one size.

        Raises:
            PositionError: units have another number of coordinates.
        """
        (encoding,) = self.encodings
        keys = self._scaled(coordinates(self.name, encoding, positions[encoding], self.axes))
        queries = self._scaled(positions.queries(encoding))
        if len(keys) > 1 and holds((keys == keys[:1]).all()):
            return PairCoordinates(queries[:1], keys[:1])
        return PairCoordinates(queries, keys)

    def _scaled(self, places: Tensor) -> Tensor:
        return (places if places.is_floating_point() else places.clamp(min=0)).double() / self.extent


@dataclass(frozen=True, eq=False)
class Rotations:
    """Rotations (b or 1, h, n, blocks, g, g) of the first channels of queries, and of keys."""

    queries: Tensor
    keys: Tensor

    def turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Each block of g channels turned; the channels after the last block as they are."""
        return _turned(q, self.queries), _turned(k, self.keys)


class LieModel(GridModel):
    """Rotates blocks of g channels of a head by R(x) = exp(sum_c A_c x_c); a variant defines the A_c."""

    @abstractmethod
    def generators(self, layer: int) -> Tensor:
        """(h or 1, blocks, axes, g, g) the skew-symmetric A_c."""

    def terms(self, prepared: PairCoordinates, site: Site) -> Terms:
        keys = self.rotations(prepared.keys, site.layer)
        same = prepared.queries.shape == prepared.keys.shape  # then they are the same units
        queries = keys if same else self.rotations(prepared.queries, site.layer)
        return Terms(maps=(Rotations(queries, keys).turned,))

    def rotations(self, places: Tensor, layer: int) -> Tensor:
        """(b, h, n, blocks, g, g) R(x) of the places (b, n, axes)."""
        return _rotations(places, self.generators(layer))


def block_of(model: str, dims: Dims, block: int | None) -> int:
    """The width of the blocks: as given, or 8, or that of a head if it is smaller.

    Raises:
        PositionError: below 2, or larger than a head.
    """
    width = min(8, dims.head) if block is None else block
    if not 2 <= width <= dims.head:
        raise PositionError(
            f"position model {model!r} turns blocks of {width} channels in heads of width {dims.head}; give a block of "
            f"2 channels or more, and no more than a head has"
        )
    return width


def skew(triangle: Tensor, width: int) -> Tensor:
    """(..., g, g) skew-symmetric matrices of the entries (..., g(g-1)/2) above their diagonals, row by row."""
    rows, columns = torch.triu_indices(width, width, offset=1, device=triangle.device).unbind()
    flat = triangle.new_zeros(*triangle.shape[:-1], width * width)
    upper = flat.scatter(-1, (rows * width + columns).expand(triangle.shape), triangle)
    upper = upper.view(*triangle.shape[:-1], width, width)
    return upper - upper.mT


def _rotations(places: Tensor, generators: Tensor) -> Tensor:
    """(b, h, n, blocks, g, g) of places (b, n, axes); on a CPU each distinct place once, and in float64."""
    exact = torch.promote_types(generators.dtype, torch.float32)
    with torch.autocast(generators.device.type, enabled=False):
        if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active() or not generators.is_cpu:
            exponents = torch.einsum("bnc,hpcij->bhnpij", places.to(exact), generators.to(exact))
            rotations: Tensor = torch.linalg.matrix_exp(exponents.contiguous())
            return rotations
        distinct, which = places.double().flatten(0, 1).unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
        exponents = torch.einsum("nc,hpcij->nhpij", distinct, generators.double())
        made = exponential(exponents.flatten(0, 2)).view(exponents.shape).to(exact)
        return made.index_select(0, which).view(*places.shape[:2], *made.shape[1:]).transpose(1, 2)


def exponential(x: Float[Tensor, "N g g"]) -> Float[Tensor, "N g g"]:
    """exp(x) of many small matrices of float64: ``torch.linalg.matrix_exp`` to rounding, in half of its time.

    The gradient of that function is the exponential of matrices of twice the width. Here all are divided by one power
    of two, up to a norm of 1/4, where Taylor's polynomial of degree 12 is exact, and then squared again. They come in
    blocks (:func:`by_rows`), as the products of all would take some twenty times their memory.
    """
    numbers = 2 * 24 * x.shape[-1] ** 2  # of float64
    (made,) = by_rows(_exponential, cut(len(x), numbers, x.device), [x.flatten(1)], [])
    return made.view_as(x)


def _exponential(block: Ranges, rows: Tensor) -> tuple[Tensor]:
    del block
    width = math.isqrt(rows.shape[1])
    x = rows.view(-1, width, width)
    norm = float(x.detach().abs().sum(-1).amax()) if x.numel() else 0.0
    squarings = max(0, math.frexp(4 * norm)[1]) if math.isfinite(norm) else 0
    x = x * 2.0**-squarings
    powers = [torch.eye(width, dtype=x.dtype, device=x.device), x, square := x @ x, square @ x, square @ square]
    parts = [cast(Tensor, sum(p / math.factorial(at + i) for i, p in enumerate(powers[:4]))) for at in (0, 4, 8)]
    made = parts[2] + powers[4] / math.factorial(12)
    for part in reversed(parts[:2]):
        made = torch.baddbmm(part, powers[4], made)
    for _ in range(squarings):
        made = made @ made
    return (made.flatten(1),)


def _turned(x: Tensor, rotations: Tensor) -> Tensor:
    blocks, width = rotations.shape[3], rotations.shape[5]
    turning, rest = x[..., : blocks * width], x[..., blocks * width :]
    vectors = turning.reshape(*x.shape[:3], blocks, width, 1)
    turned = (rotations.to(x.dtype) @ vectors).reshape(turning.shape)
    return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned


class LieRE(LieModel, name="liere"):
    """LieRE: queries and keys rotated by exponentials of learned matrices (Ostmeier et al. 2024).

    (q_i, k_j) -> (R(x_i) q_i, R(x_j) k_j),  R(x) = exp(sum_c x_c (U_c - U_c^T)), U_c learned, upper triangular.

    R turns blocks of g channels of a head; each layer, head, block and axis has its own U_c (g, g), and channels after
    the last whole block stay as they are. With g = 2 this is ``mixed-rotary`` with another start. (Ostmeier et al.
    2024, section 4; their code: "learned", per layer and head. g = 8 is their LieRE_8; LieRE_64 has g = d_h, whose
    exponentials take much longer.) As there, the entries start from U(0, 2 pi), and coordinates go from 0 to 1: they
    are divided by ``extent``.

    On one axis the rotations commute and scores depend on offsets only; on several they do not, unless g = 2: then
    scores depend on both places. Compared with the authors' code in float64. A class token, without a place, is not
    turned.

    Args:
        dims: sizes of the Transformer.
        encoding: coordinates per unit; a sequence has one axis, the others are 0.
        axes: how many coordinates.
        block: g; None for 8, or the width of a head if that is smaller.
        extent: largest coordinate in training.

    Raises:
        PositionError: a block is not a pair, or wider than a head; the extent is 0 or less; another number of
            coordinates.
    """

    spec = Spec(
        "ostmeier2024",
        "grid",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*h*p*a*g*(g - 1)//2"),
        note="relative on one axis; on several axes rotations do not commute, but for blocks of 2",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Coordinates(),
        axes: int = 2,
        block: int | None = None,
        extent: float = 13.0,
    ) -> None:
        self.block = block_of(self.name, dims, block)
        blocks = dims.head // self.block
        super().__init__(dims, encoding, axes, extent, p=blocks, a=axes, g=self.block)
        entries = torch.rand(dims.layers, dims.heads, blocks, axes, self.block * (self.block - 1) // 2)
        self.entries = nn.Parameter(entries * 2 * math.pi)

    def generators(self, layer: int) -> Tensor:
        return skew(self.entries[layer], self.block)


class ComRoPE(LieModel, name="comrope"):
    """ComRoPE: rotations by exponentials of learned matrices that commute (Yu et al. 2025).

    (q_i, k_j) -> (R(x_i) q_i, R(x_j) k_j),  R(x) = exp((sum_c m_c x_c) (B - B^T)),  B and m_c learned.

    The matrices of all axes are multiples of one, so that they commute: q.k depends only on the offsets on all axes,
    unlike in ``liere``. R turns blocks of g channels; each layer, head and block has its own B (g, g), each layer and
    block its own m_c for each axis. (Yu et al. 2025, "linearly dependent", ComRoPE-LD, and their code; their ComRoPE-AP
    is ``comrope-ap``.) As in the code m and the entries of B start from N(0, 1), and coordinates c as
    (c + 1/2) / places: the half cancels in offsets. Compared with that code in float64. B is stored as what matters of
    it, the entries above the diagonal of B - B^T, which start from N(0, 2).

    Args:
        dims: sizes of the Transformer.
        encoding: coordinates per unit; a sequence has one axis, the others are 0.
        axes: how many coordinates.
        block: g; None for 8, or the width of a head if that is smaller.
        extent: number of places along an axis in training.

    Raises:
        PositionError: a block is not a pair, or wider than a head; the extent is 0 or less; another number of
            coordinates.
    """

    spec = Spec(
        "yu2025",
        "grid",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*p*(h*g*(g - 1)//2 + a)"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Coordinates(),
        axes: int = 2,
        block: int | None = None,
        extent: float = 14.0,
    ) -> None:
        self.block = block_of(self.name, dims, block)
        blocks = dims.head // self.block
        super().__init__(dims, encoding, axes, extent, p=blocks, a=axes, g=self.block)
        entries = torch.randn(dims.layers, dims.heads, blocks, 1, self.block * (self.block - 1) // 2)
        self.entries = nn.Parameter(entries * 2**0.5)
        self.multiples = nn.Parameter(torch.randn(dims.layers, blocks, axes))

    def generators(self, layer: int) -> Tensor:
        return skew(self.entries[layer], self.block) * self.multiples[layer, ..., None, None]


class ComRoPEAP(LieModel, name="comrope-ap"):
    """ComRoPE with blocks of channels for each axis: rotations by exponentials of learned matrices (Yu et al. 2025).

    (q_i, k_j) -> (R(x_i) q_i, R(x_j) k_j),  R(x) = exp(x_a(p) (B_p - B_p^T)) in the block p,  a(p) = p mod axes.

    Blocks take turns over the axes, and matrices of one block commute, as they are multiples of one: q.k depends only
    on the offsets on all axes. Each layer, head and block has its own B (g, g), learned. (Yu et al. 2025, "axial
    partition", ComRoPE-AP, and their code.) As there the entries of B start from N(0, 1), and coordinates c are (c +
    1/2) / places: the half cancels in offsets. Compared with that code in float64. With g = 2 this is
    ``axial-rotary`` with learned frequencies. B is stored as in ``comrope``.

    Args:
        dims: sizes of the Transformer.
        encoding: coordinates per unit; a sequence has one axis, the others are 0.
        axes: how many coordinates.
        block: g; None for 8, or less, such that each axis has a block.
        extent: number of places along an axis in training.

    Raises:
        PositionError: a block is not a pair, or so wide that an axis has none; the extent is 0 or less; another number
            of coordinates.
    """

    spec = Spec(
        "yu2025",
        "grid",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*h*p*g*(g - 1)//2"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Coordinates(),
        axes: int = 2,
        block: int | None = None,
        extent: float = 14.0,
    ) -> None:
        self.block = block_of(self.name, dims, max(2, min(8, dims.head // axes)) if block is None else block)
        blocks = dims.head // self.block
        if blocks < axes:
            raise PositionError(
                f"position model {self.name!r} has {blocks} blocks of {self.block} channels in a head, and {axes} "
                f"axes; give a smaller block, or wider heads"
            )
        super().__init__(dims, encoding, axes, extent, p=blocks, g=self.block)
        entries = torch.randn(dims.layers, dims.heads, blocks, self.block * (self.block - 1) // 2)
        self.entries = nn.Parameter(entries * 2**0.5)

    def generators(self, layer: int) -> Tensor:
        own = skew(self.entries[layer], self.block)[:, :, None]  # (h, p, 1, g, g)
        blocks = torch.arange(own.shape[1], device=own.device) % self.axes
        turned = blocks[:, None] == torch.arange(self.axes, device=own.device)
        return own * turned[..., None, None]

    def rotations(self, places: Tensor, layer: int) -> Tensor:
        # Axis by axis, whose distinct coordinates are far fewer than the places of an image.
        own = skew(self.entries[layer], self.block)[:, :, None]
        of_axes = [_rotations(places[..., [axis]], own[:, axis :: self.axes]) for axis in range(self.axes)]
        blocks = torch.arange(own.shape[1], device=own.device)
        order = torch.cat([blocks[axis :: self.axes] for axis in range(self.axes)]).argsort()
        return torch.cat(of_axes, dim=3).index_select(3, order)


class CayleyString(GridModel, name="cayley-string"):
    """Cayley-STRING: rotary positions in a learned orthogonal basis (Schenck et al. 2025).

    (q_i, k_j) -> (T(x_i) P^T q_i, T(x_j) P^T k_j),  P = (I - S)(I + S)^(-1), S skew-symmetric and learned.

    T(x) turns the channels (2u, 2u+1) by sum_c v_uc x_c, v learned, so that q.k is that of R(x) = P T(x) P^T, and
    depends only on the offsets on all axes. Any rotations exp(sum_c A_c x_c) with A_c that commute are of this form.
    S (d_h, d_h) and v (d_h/2, axes) are those of each layer and head. (Schenck et al. 2025, theorem 3.2 and section
    3.2.1. No code by the authors is known: compared with the product of the matrices.)

    S starts from zero, where P = I, and v as in ``axial-rotary``: the pairs take turns over the axes, each with the
    frequencies base^(-i/p) of its p pairs. Both are our choices. A class token, without a place, is not turned.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: coordinates per unit; a sequence has one axis, the others are 0.
        axes: how many coordinates.
        base: of the frequencies that v starts from.

    Raises:
        PositionError: the width of a head is odd, or another number of coordinates.
    """

    spec = Spec(
        "schenck2025",
        "grid",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*d*(a + dh - 1)//2"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), axes: int = 2, base: float = 100.0) -> None:
        check_even(self.name, dims)
        super().__init__(dims, encoding, axes, 1.0, a=axes)
        pairs = torch.arange(dims.head // 2)
        each = -(-len(pairs) // axes)  # pairs of an axis
        start = torch.zeros(len(pairs), axes)
        start[pairs, pairs % axes] = base ** (-(pairs // axes) / each)
        self.frequencies = nn.Parameter(start.repeat(dims.layers, dims.heads, 1, 1))
        self.basis = nn.Parameter(torch.zeros(dims.layers, dims.heads, dims.head * (dims.head - 1) // 2))

    def terms(self, prepared: PairCoordinates, site: Site) -> Terms:
        own = self.frequencies[site.layer]
        angles = (torch.einsum("bnc,hpc->bhnp", places, own.double()) for places in (prepared.queries, prepared.keys))
        return Terms(maps=(_after(self.change(site.layer), Turns(*angles).neighbours),))

    def change(self, layer: int) -> Tensor:
        """(h, d_h, d_h) P, float32 at least."""
        exact = torch.promote_types(self.basis.dtype, torch.float32)
        s = skew(self.basis[layer].to(exact), self.dims.head)
        one = torch.eye(self.dims.head, dtype=exact, device=s.device)
        p: Tensor = torch.linalg.solve(one + s, one - s)  # they commute
        return p


def _after(change: Tensor, turn: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> Map:
    """Queries and keys in the other basis, then turned."""

    def mapped(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return turn(q @ change.to(q.dtype), k @ change.to(k.dtype))

    return mapped


class HARoPE(GridModel, name="harope"):
    """HARoPE: a learned linear map of queries and its inverse on keys, then rotary positions (Li J. et al. 2025).

    (q_i, k_j) -> (R_i M q_i, R_j M^(-T) k_j),  M = U diag(s) V^T, of each head of each layer.

    U = exp(A - A^T) and V = exp(B - B^T) are rotations, A and B learned; s (d_h) is learned too, a softplus plus 1e-6.
    At equal places q.k is as without M; elsewhere the planes in which channels turn are learned for each head. R turns
    the channels (2i, 2i+1) as in ``axial-rotary``, the first p of them by the first coordinate, by c base^(-i/p), and
    so on: q.k depends only on the offsets on all axes. (Li J. et al. 2025, and their code.) As there M starts as the
    identity; A is stored as what matters of it, the entries above the diagonal of A - A^T. Compared with that code in
    float64. A class token, without a place, is not turned. It cannot be summed with other models that change queries
    and keys.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: coordinates per unit; a sequence has one axis, the others are 0.
        axes: how many coordinates; where they do not divide the pairs, the last ones have one more.
        base: the slowest pair of an axis turns about this many times slower than the fastest.

    Raises:
        PositionError: the width of a head is odd, there are fewer pairs than axes, or another number of coordinates.
    """

    spec = Spec("li2025", "grid", Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*d*dh"))

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), axes: int = 2, base: float = 10000.0) -> None:
        check_even(self.name, dims)
        super().__init__(dims, encoding, axes, 1.0)
        pairs = dims.head // 2
        if pairs < axes:
            raise PositionError(
                f"position model {self.name!r} has {pairs} pairs of channels in a head, and {axes} axes; give wider "
                f"heads"
            )
        self.base, self.counts = base, [(pairs + axis) // axes for axis in range(axes)]
        triangles = (dims.layers, dims.heads, 2, dims.head * (dims.head - 1) // 2)
        self.rotations = nn.Parameter(torch.zeros(triangles))
        self.lengths = nn.Parameter(torch.full((dims.layers, dims.heads, dims.head), math.log(math.expm1(1.0))))

    def terms(self, prepared: PairCoordinates, site: Site) -> Terms:
        turns = Turns(self._angles(prepared.queries), self._angles(prepared.keys))
        of_queries, of_keys = self.changes(site.layer)

        def mapped(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
            return turns.neighbours(q @ of_queries.mT.to(q.dtype), k @ of_keys.mT.to(k.dtype))

        return Terms(maps=(mapped,))

    def changes(self, layer: int) -> tuple[Tensor, Tensor]:
        """(h, d_h, d_h) M, and its inverse, transposed; float32 at least."""
        exact = torch.promote_types(self.rotations.dtype, torch.float32)
        both = torch.linalg.matrix_exp(skew(self.rotations[layer].to(exact), self.dims.head))
        u, v = both.unbind(1)
        s = functional.softplus(self.lengths[layer].to(exact))[:, None] + 1e-6
        return (u * s) @ v.mT, (u / s) @ v.mT

    def _angles(self, places: Tensor) -> Tensor:
        """(b, 1, n, d_h/2)."""
        of_axes = [
            places[..., axis, None] * inverse_frequencies(2 * count, places.device, self.base)
            for axis, count in enumerate(self.counts)
        ]
        return torch.cat(of_axes, dim=-1)[:, None]


@dataclass(frozen=True, eq=False)
class Phases:
    """Angles (b or 1, h, n, d_h/2 + 1) of the Fourier coefficients of queries, and of keys."""

    queries: Tensor
    keys: Tensor

    def turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Each coefficient turned by its angle."""
        return _shifted(q, self.queries), _shifted(k, self.keys)


def _shifted(x: Tensor, angles: Tensor) -> Tensor:
    with torch.autocast(x.device.type, enabled=False):
        spectrum = torch.fft.rfft(x.to(angles.dtype))
        turned: Tensor = torch.fft.irfft(spectrum * torch.complex(angles.cos(), angles.sin()), n=x.shape[-1])
    return turned.to(x.dtype)


class CirculantString(GridModel, name="circulant-string"):
    """Circulant-STRING: exponentials of circulant matrices, applied by Fourier transforms (Schenck et al. 2025).

    (q_i, k_j) -> (R(x_i) q_i, R(x_j) k_j),  R(x) = exp(sum_c x_c (C_c - C_c^T)), C_c circulant and learned.

    Circulant matrices commute, so that q.k depends only on the offsets on all axes. A Fourier transform makes them
    diagonal: R(x) q turns its f-th coefficient by 2 sum_c x_c Im F(c)_f, c the first column of C_c, in d_h log d_h
    operations. Columns (d_h) are learned for each layer, head and axis. (Schenck et al. 2025, section 3.2.2. No code by
    the authors is known: compared with the exponential of the matrices.) They start from N(0, ``std``^2), our choice;
    coordinates are divided by ``extent``. A class token, without a place, is not turned.

    Args:
        dims: sizes of the Transformer; the width of a head must be 3 or more.
        encoding: coordinates per unit; a sequence has one axis, the others are 0.
        axes: how many coordinates.
        extent: what coordinates are divided by.
        std: deviation that the entries start from.

    Raises:
        PositionError: the heads are too narrow, the extent is 0 or less, or another number of coordinates.
    """

    spec = Spec("schenck2025", "grid", Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*d*a"))

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Coordinates(),
        axes: int = 2,
        extent: float = 1.0,
        std: float = 0.1,
    ) -> None:
        if dims.head < 3:
            raise PositionError(
                f"position model {self.name!r} turns nothing in heads of width {dims.head}; give a width of 3 or more"
            )
        super().__init__(dims, encoding, axes, extent, a=axes)
        self.columns = nn.Parameter(torch.randn(dims.layers, dims.heads, axes, dims.head) * std)

    def terms(self, prepared: PairCoordinates, site: Site) -> Terms:
        columns = self.columns[site.layer]
        exact = torch.promote_types(columns.dtype, torch.float32)
        frequencies = 2 * torch.fft.rfft(columns.to(exact)).imag
        with torch.autocast(columns.device.type, enabled=False):
            queries, keys = (
                torch.einsum("bnc,hcf->bhnf", places.to(exact), frequencies)
                for places in (prepared.queries, prepared.keys)
            )
        return Terms(maps=(Phases(queries, keys).turned,))
