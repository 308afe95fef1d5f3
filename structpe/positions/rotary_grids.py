"""Rotary positions of images and videos: channels turn with the coordinates of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import CircleInSpace, Coordinates, Diagonal, GridRange
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Positions, Spec
from structpe.positions.batch import holds
from structpe.positions.places import coordinates
from structpe.positions.rotary import CELLS, Rotary, RotaryModel, Turns, check_longer
from structpe.positions.sinusoids import inverse_frequencies

__all__ = [
    "AxialRotary",
    "AxialRotary3D",
    "AxialRotaryModel",
    "CircleRoPE",
    "DINOv3Rotary",
    "EVA02Rotary",
    "VideoRoPE",
]


class AxialRotaryModel(RotaryModel):
    """Angle c_a base^(-i/p_a) of each unit for the pair i < p_a of axis a, c_a being its coordinate there.

    Units without a place in the grid are not rotated.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: coordinates per unit.
        base: of the inverse frequencies.
        pairs: (a, p_a) of each axis, in the order of the channels.
    """

    interleaved = True

    def __init__(self, dims: Dims, encoding: Encoding, base: float, pairs: Sequence[tuple[int, int]]) -> None:
        super().__init__(dims, encoding, base)
        self.pairs = pairs

    def prepare(self, positions: Positions) -> Turns:
        """The angles, once for all layers.

        Raises:
            PositionError: units differ on an axis that has no channels, or have another number of coordinates.
        """
        (encoding,) = self.encodings
        of_keys = coordinates(self.name, encoding, positions[encoding], len(self.pairs))
        real = torch.ones_like(of_keys[..., 0], dtype=torch.bool) if positions.present is None else positions.present
        for axis, count in self.pairs:
            if not count and holds((real & (of_keys[..., axis] > 0)).any()):
                raise PositionError(
                    f"position model {self.name!r} has no channels for axis {axis} of the coordinates, on which this "
                    f"batch has places other than 0; build it with wider heads, 2 channels per axis at least"
                )
        return Turns(self._angles(positions.queries(encoding)), self._angles(of_keys))

    def _angles(self, places: Tensor) -> Tensor:
        if not places.is_floating_point():
            places = places.clamp(min=0)
        each = [
            places[..., a, None].double() * inverse_frequencies(2 * p, places.device, self.base) for a, p in self.pairs
        ]
        return torch.cat(each, dim=-1)[:, None]


class AxialRotary(AxialRotaryModel, name="axial-rotary"):
    """Rotary positions of images: half of the channels turn with the column, half with the row (Heo et al. 2024).

    Of the channels (2i, 2i+1) of each head, half is turned by x base^(-i/p), the other half by y base^(-i/p).

    x comes first, and i < p = d_h/4 in each half; q.k then depends only on the offsets on both axes. (Heo et al. 2024,
    section 3.2, "axial frequency", and their code; base 100, as an image has shorter sides than a text.) Where 4 does
    not divide d_h, the columns have one pair more. A class token, which has no place in the grid, is not rotated.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: (y, x) per unit.
        base: the slowest pair turns about this many times slower than the fastest.

    Raises:
        PositionError: the width of a head is odd, another number of coordinates, or heads of 2 channels and an image of
            several rows.
    """

    spec = Spec("heo2024", "grid", CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), base: float = 100.0) -> None:
        pairs = dims.head // 2
        super().__init__(dims, encoding, base, [(1, pairs - pairs // 2), (0, pairs // 2)])


class AxialRotary3D(AxialRotaryModel, name="axial-rotary-3d"):
    """Rotary positions of videos: separate channels for time, row and column (Yang et al. 2025, CogVideoX).

    Of the channels (2i, 2i+1) of each head, 2/8 turn with the time, 3/8 with the row and 3/8 with the column.

    The pair i of p that turn with a coordinate c turns by c base^(-i/p); q.k then depends on the offsets on the three
    axes only. (Yang et al. 2025, section 2.2, "3D-RoPE", and their code, which has time first, then row, then column.)
    Where 16 does not divide d_h, the fractions are rounded: time down, but not to zero if there is a pair for each
    axis, and of the rest the column has one pair more. Units without a place in the grid are not rotated.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: (time, y, x) per unit.
        base: the slowest pair turns about this many times slower than the fastest.

    Raises:
        PositionError: the width of a head is odd, another number of coordinates, or heads of 2 or 4 channels and units
            that differ on an axis that is left without.
    """

    spec = Spec("yang2025", "grid", CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(axes=3), base: float = 10000.0) -> None:
        pairs = dims.head // 2
        time = max(pairs // 4, int(pairs > 2))
        row = (pairs - time) // 2
        super().__init__(dims, encoding, base, [(0, time), (1, row), (2, pairs - time - row)])


class EVA02Rotary(AxialRotaryModel, name="eva-02-rotary"):
    """Rotary positions of images, places scaled to the size of pretraining: rows, then columns (Fang et al. 2023).

    Of the channels (2i, 2i+1) of each head, half is turned by y base^(-i/p), the other half by x base^(-i/p).

    y = P c/n, c the row and n their number, and likewise x: an image of any size has the places 0..P of those that the
    model was trained on. The first p = d_h/4 pairs are those of rows, the columns have one more where 4 does not divide
    d_h. (EVA-02, Fang et al. 2023: their code, "VisionRotaryEmbeddingFast"; in timm ``in_pixels=False`` with a
    ``ref_feat_shape``.) Compared with timm's. ``axial-rotary`` begins with columns, and has places as they are. A class
    token, without a place, is not turned.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: (y, x) per unit; P is the end of its range.
        base: the slowest pair turns about this many times slower than the fastest.

    Raises:
        PositionError: the width of a head is odd, or another number of coordinates.
    """

    spec = Spec(
        "fang2023",
        "grid",
        Cells("B", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
        note="a larger image moves all places, and offsets with them",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = GridRange(low=0.0, high=16.0, centre=False),
        base: float = 10000.0,
    ) -> None:
        pairs = dims.head // 2
        super().__init__(dims, encoding, base, [(0, pairs // 2), (1, pairs - pairs // 2)])


class DINOv3Rotary(AxialRotaryModel, name="dinov3-rotary"):
    """Rotary positions of images, places from -1 to 1, which training stretches (Simeoni et al. 2025).

    Channels (i, i + d_h/2) of each head are turned by 2 pi y base^(-i/p) for i < p, then by 2 pi x base^(-(i-p)/p).

    y = 2 (c + 1/2)/n - 1, c the row and n their number, and likewise x; p = d_h/4. In training the coordinates of a
    batch are multiplied by two factors: one for each axis, from 1/jitter to jitter, and one for both, from 1/rescale to
    rescale, whose logarithms are uniform. (DINOv3, Simeoni et al. 2025; their code and that of transformers, with
    "pos_embed_jitter" and "pos_embed_rescale".) Compared with transformers'. Their "pos_embed_shift", which its
    configuration leaves out by default, is not included. Where 4 does not divide d_h, the columns have one pair more.
    Class and register tokens, without a place, are not turned.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: (y, x) per unit.
        base: the slowest pair turns about this many times slower than the fastest.
        jitter: largest factor of an axis, 1 or more; 1 for none.
        rescale: largest factor of both axes, 1 or more; 1 for none.

    Raises:
        PositionError: the width of a head is odd, another number of coordinates, or a factor is below 1.
    """

    spec = Spec(
        "simeoni2025",
        "grid",
        Cells("B", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
        note="a larger image moves all places, and offsets with them",
    )

    interleaved = False

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = GridRange(),
        base: float = 100.0,
        jitter: float = 1.0,
        rescale: float = 2.0,
    ) -> None:
        check_longer(self.name, jitter=jitter, rescale=rescale)
        pairs = dims.head // 2
        super().__init__(dims, encoding, base, [(0, pairs // 2), (1, pairs - pairs // 2)])
        self.jitter, self.rescale = jitter, rescale

    def prepare(self, positions: Positions) -> Turns:
        """The angles, once for all layers; in training of coordinates that are stretched.

        Raises:
            PositionError: units have another number of coordinates.
        """
        if self.training:
            (encoding,) = self.encodings
            own, both = (2 * torch.rand(size) - 1 for size in (2, 1))
            factors = (own * math.log(self.jitter) + both * math.log(self.rescale)).exp()
            given = coordinates(self.name, encoding, positions[encoding], 2)
            positions = positions.replaced({encoding: given * factors.to(given.device)})
        return super().prepare(positions)

    def _angles(self, places: Tensor) -> Tensor:
        return 2 * math.pi * super()._angles(places)


class VideoRoPE(Rotary, name="video-rope"):
    """Rotary positions of videos: fast pairs turn with row and column in turn, the slowest with time (Wei et al. 2025).

    ``rotary-half`` whose pairs i turn by t_a(i) base^(-2i/d_h): a(i) is row, column, row, ..., then time for a quarter.

    The coordinates are those of ``diagonal``: frames follow one another as the units of a text do, their middles on the
    line of texts, some places apart. (VideoRoPE, Wei et al. 2025, and their code: low frequencies for time, a diagonal
    layout, an adjustable spacing of frames. There 16 of 64 pairs are those of time.) A text is turned as in
    ``rotary-half``. It is ``rotary`` with the ``order`` "alternating"; where 4 does not divide the number of pairs,
    time has fewer, but one if there is a pair for each axis.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: (time, y, x) per unit.
        base: of the inverse frequencies; 1,000,000 in Qwen2-VL, from which the authors' models are trained.

    Raises:
        PositionError: the width of a head is odd, or another number of coordinates.
    """

    spec = Spec("wei2025", "grid", CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Diagonal(), base: float = 10000.0) -> None:
        sections = _quarters(dims)
        super().__init__(dims, base=base, layout="halves", axes=(encoding,), sections=sections, order="alternating")


class CircleRoPE(Rotary, name="circle-rope"):
    """Rotary positions of images beside texts: patches on a circle around the line of the text (Wang C. et al. 2025).

    ``rotary-half`` whose pairs i turn by t_a(i) base^(-2i/d_h): a(i) is time for a quarter, then row, then column.

    The coordinates are those of ``circle-in-space``, at right angles to the direction of a text, in which the three are
    equal: a text has the same distance from all patches. (Circle-RoPE, Wang C. et al. 2025, and their code, on the
    sections of Qwen2.5-VL.) In their models every second layer has ``mrope`` instead, which a cycle of layers says:
    ``{"cycle": ["circle-rope", ...]}``. A text is turned as in ``rotary-half``.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: (time, y, x) per unit.
        base: of the inverse frequencies; 1,000,000 in Qwen2.5-VL.

    Raises:
        PositionError: the width of a head is odd, or another number of coordinates.
    """

    spec = Spec("wang2025", "grid", CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = CircleInSpace(), base: float = 10000.0) -> None:
        super().__init__(dims, base=base, layout="halves", axes=(encoding,), sections=_quarters(dims))


def _quarters(dims: Dims) -> tuple[int, ...]:
    """Pairs of time, row and column: 2, 3 and 3 eighths."""
    pairs = dims.head // 2
    time = max(pairs // 4, int(pairs > 2))
    return time, pairs - time - (pairs - time) // 2, (pairs - time) // 2
