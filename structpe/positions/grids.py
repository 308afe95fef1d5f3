"""Images and videos: positions on a grid of patches or pixels.

A model raises a :class:`PositionError` for an encoding that does not give what it needs, such as two coordinates per
unit, and for a batch with a place beyond its shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import OUTSIDE, Coordinates, GridOffset, GridRank, UnitSquare
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Sources, Spec
from structpe.positions.batch import holds, of_arity, of_whole
from structpe.positions.places import (
    GridTable,
    check_shape,
    coordinates,
    counts,
    half,
    in_queries_and_keys,
    outside,
    row_by_row,
    within,
)
from structpe.positions.sinusoids import CELLS, Augmentation, augmented, interleaved, timing
from structpe.positions.tables import PairTable, Sharing
from structpe.terms import Lookup

__all__ = ["CAPE2D", "DETR", "BEiT", "DETRLearned", "SinusoidalND", "Swin", "TimeSformer", "ViT", "ViT2D", "ViViT"]


def _added(params: str) -> Cells:
    """The row of Table 1 of learned vectors that are added to the input, on grids of a largest size."""
    return Cells("A", "APE", learnable=True, recurring=False, unbound=False, params=params)


@dataclass(frozen=True)
class WindowRows:
    """A row for each offset within a window of the shape (W_1, ..., W_A); those beyond it share the row at its edge.

    Rows count query minus key, as the authors do, the last axis fastest.

    Args:
        model: name of the position model, for error messages.
        window: its shape.
        codes: whether three more rows are for pairs with a unit that is outside the grid: only the query, only the key,
            both.
    """

    model: str
    window: tuple[int, ...]
    codes: bool

    def __post_init__(self) -> None:
        check_shape(self.model, self.window, max(1, len(self.window)))

    @property
    def size(self) -> int:
        """Number of rows, R: the product of 2 W_a - 1, and 3 for codes."""
        # A list: torch.compile does not see through a generator here.
        return math.prod([2 * length - 1 for length in self.window]) + 3 * self.codes

    def of(self, values: Tensor) -> Tensor:
        """(r,) row of each of the offsets (r, axes)."""
        row = torch.zeros_like(values[:, 0])
        for axis, length in enumerate(self.window):
            row = row * (2 * length - 1) + (-values[:, axis]).clamp(1 - length, length - 1) + length - 1
        code = values[:, 0] - OUTSIDE  # 1, 2 or 3 where a unit is outside the grid
        return torch.where(code > 0, self.size - 4 + code, row) if self.codes else row


class WindowBias(PairTable):
    """s_ij += B[row of the offset between two patches], one learned scalar per head, layer and offset in a window.

    Args:
        encoding: (y, x) offsets per pair, key minus query.
        window: (H, W), or any other number of axes that the encoding has.
        rows: the rule of the rows.
        sharing: which layers and heads have the same numbers.
        std: deviation of the normal distribution that the scalars start from.

    Raises:
        PositionError: an invalid window, or another number of axes.
    """

    def __init__(self, dims: Dims, encoding: Encoding, rows: WindowRows, sharing: Sharing, std: float = 0.02) -> None:
        super().__init__(dims, encoding, rows, sharing, std=std)
        self.window = rows.window

    def of_pairs(self, positions: Positions) -> Lookup:
        """The offset of each pair on each axis of the window.

        Raises:
            PositionError: the encoding gives something else.
        """
        encoding, axes = self.encodings[0], len(self.window)
        of_pairs: Lookup = positions[encoding]
        if of_pairs.table.ndim != 2 or of_pairs.table.shape[1] != axes:
            given = "one number" if of_pairs.table.ndim == 1 else f"{of_pairs.table.shape[1]} numbers"
            raise PositionError(
                f"position model {self.name!r} needs an offset on each of the {axes} axes of its window; "
                f"{encoding.name!r} gives {given} per pair; choose 'grid-offset' with axes={axes}, or another window"
            )
        return of_pairs


class BEiT(WindowBias, name="beit"):
    """A learned scalar per offset of two patches of an image, and three for its class token (Bao et al. 2022, BEiT).

    s_ij += B[(y_i - y_j + H - 1)(2W - 1) + x_i - x_j + W - 1], and three rows for the class token.

    Of R rows, and with c the class token::

        s_cj += B[R - 3],    s_ic += B[R - 2],    s_cc += B[R - 1],    R = (2H - 1)(2W - 1) + 3

    One scalar per head and layer, zero at first; the window H x W is the image. (The authors' code, classes Attention
    and RelativePositionBias; Bao et al. 2022 themselves write of learned absolute positions, ``vit``, which the code
    can add to this.) They fine-tune with a table per layer, as here by default, and pre-train with one for all layers:
    ``layer-wise``. The class token is the unit without a place in the grid: see
    :func:`structpe.transforms.with_class_token`. Offsets beyond the window count as those at its edge.

    """

    spec = Spec("bao2022", "grid", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"))

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = GridOffset(),
        window: tuple[int, ...] = (14, 14),
        sharing: Sharing = "none",
    ) -> None:
        super().__init__(dims, encoding, WindowRows(self.name, tuple(window), codes=True), sharing, std=0.0)


class CAPE2D(PositionModel, name="cape-2d"):
    """Waves across an image whose places are shifted and scaled at random while training: CAPE (Likhomanenko 2021).

    sqrt(d) x_u + cat[cos phi_u, sin phi_u],  phi_uj = pi rho_j (a'_u cos j + b'_u sin j),  rho_j = 10^(j/(d/2 - 1)).

    j runs from 0 to d/2 - 1, and is an angle in radians too. (a, b) are the coordinates of a unit, each from -1 to 1
    across the grid; a is that of the grid's first axis. In training (a', b') = ((a, b) + delta + epsilon_u) e^lambda,
    in evaluation (a, b): delta ~ U(-shift, shift) along each axis and lambda ~ U(-log scaling, log scaling) are drawn
    for each structure and batch, epsilon_u for each unit, up to ``local`` steps of the grid along each axis.
    (Likhomanenko et al. 2021; the code is a third party's and follows the paper's listing.) A unit without a place in
    the grid, such as a class token, gets the factor sqrt(d) only. By default nothing is drawn at random, as in the
    code.

    Args:
        encoding: coordinates and steps.
        shift: most by which all units are moved along an axis, 0 or more.
        local: most by which a unit is moved by itself, in steps; up to 0.5 keeps their order.
        scaling: most by which coordinates are multiplied or divided, 1 or more.

    Raises:
        PositionError: the width is odd, or an augmentation is invalid.
    """

    spec = Spec("likhomanenko2021", "grid", CELLS)

    def __init__(
        self,
        dims: Dims,
        encoding: UnitSquare = UnitSquare(),
        shift: float = 0.0,
        local: float = 0.0,
        scaling: float = 1.0,
    ) -> None:
        super().__init__(dims, [encoding])
        if dims.width % 2:
            raise PositionError(f"position model 'cape-2d' has a sine for each cosine; the width {dims.width} is odd")
        self.augmentation = Augmentation(self.name, shift, local, scaling)

    def prepare(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """(b, n, 2) the coordinates of this batch, float64, and (b, n) which units have any."""
        coordinates, steps = positions.queries(self.encodings[0]).double().unbind(-1)
        there = steps[..., 0] >= 0
        if self.training:
            coordinates = augmented(coordinates, *self.augmentation.draw(coordinates, steps.clamp(min=0)))
        return coordinates, there

    def inputs(self, x: Tensor, prepared: tuple[Tensor, Tensor]) -> Tensor:
        coordinates, there = prepared
        waves = self.waves(coordinates) * there[..., None]
        return x * math.sqrt(self.dims.width) + waves.to(x.dtype)

    def waves(self, coordinates: Tensor) -> Tensor:
        """(..., d) of coordinates (..., 2)."""
        half = self.dims.width // 2
        angle = torch.arange(half, dtype=torch.float64, device=coordinates.device)
        rho = 10 ** torch.linspace(0, 1, half, dtype=torch.float64, device=coordinates.device)
        phase = math.pi * coordinates @ torch.stack([rho * angle.cos(), rho * angle.sin()])
        return torch.cat([phase.cos(), phase.sin()], dim=-1)


class DETR(PositionModel, name="detr"):
    """Sinusoids of both coordinates of a pixel in queries and keys of every layer (Carion et al. 2020, DETR).

    q = W_q (n + P), k = W_k (n + P), v = W_v n in every layer;  P_yx = cat[waves(y'), waves(x')], y first.

    waves(t)_j = sin(t 10000^(-2j/d)) for even j < d/2, cos(t 10000^(-2(j-1)/d)) for odd j. y' counts valid pixels of
    the column, down to the pixel and from 1, x' those of the row; normalised, y' = 2 pi count / (count of the whole
    column + 1e-6). n are the hidden vectors, normalised where the Transformer does that first. (Carion et al. 2020,
    appendix A.4, and their code, class PositionEmbeddingSine.) Pixels that pad an image are not valid: the feature
    ``valid`` marks them. A unit without a place in the grid has 0. Computed in float64, then rounded to the dtype of x.

    Args:
        encoding: per unit and axis (count, count of the line).
        normalised: whether counts are divided by those of their lines; the authors' model does.

    Raises:
        PositionError: an odd width, or an encoding that does not give such counts.
    """

    spec = Spec("carion2020", "grid", Cells("A", "APE", learnable=False, recurring=True, unbound=True, params="0"))

    def __init__(self, dims: Dims, encoding: Encoding = GridRank(), normalised: bool = True) -> None:
        half(self.name, dims.width)
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.normalised = normalised

    def prepare(self, positions: Positions) -> Tensor:
        """(b, m, d) P of all units, once for all layers."""
        ranks = counts(self.name, self.encodings[0], positions[self.encodings[0]], 2)
        places, whole = ranks.double().unbind(-1)
        if self.normalised:
            places = places / (whole + 1e-6) * 2 * math.pi
        return interleaved(places, self.dims.width // 2).flatten(-2)

    def sources(self, sources: Sources, prepared: Tensor, site: Site) -> Sources:
        return in_queries_and_keys(self.name, sources, prepared)


class RowsAndColumns(PositionModel):
    """A learned vector for each row, and one for each column, of a grid, each of half the width.

    Args:
        encoding: (y, x) per unit.
        shape: (H, W).

    Raises:
        PositionError: an odd width.
    """

    columns: nn.Parameter
    rows: nn.Parameter

    def __init__(self, dims: Dims, encoding: Encoding, shape: tuple[int, int]) -> None:
        check_shape(self.name, shape, 2)
        half(self.name, dims.width)
        super().__init__(dims, [of_whole(self.name, encoding)], H=shape[0], W=shape[1])
        self.shape = tuple(shape)

    def places(self, of_units: Tensor) -> Tensor:
        """(b, n, 2) the places (y, x), which are within the shape; -1 for none."""
        return within(self.name, coordinates(self.name, self.encodings[0], of_units, 2), self.shape)


class DETRLearned(RowsAndColumns, name="detr-learned"):
    """Learned vectors of rows and columns in queries and keys of every layer (Carion et al. 2020, DETR's code).

    q = W_q (n + P), k = W_k (n + P), v = W_v n in every layer;  P_yx = cat[C[x], R[y]], x first.

    C (W, d/2) are vectors of columns, R (H, d/2) of rows, from U(0, 1); one pair of tables for all layers. (Carion et
    al. 2020, ablation of section 4.2, and their code, class PositionEmbeddingLearned, with H = W = 50.) Units without a
    place in the grid get zeros.

    """

    spec = Spec(
        "carion2020", "grid", Cells("A", "APE", learnable=True, recurring=True, unbound=False, params="(H + W)*d//2")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), shape: tuple[int, int] = (50, 50)) -> None:
        super().__init__(dims, encoding, shape)
        self.columns, self.rows = (nn.Parameter(torch.rand(length, dims.width // 2)) for length in reversed(shape))

    def prepare(self, positions: Positions) -> Tensor:
        """(b, m, d) P of all units, once for all layers."""
        places = self.places(positions[self.encodings[0]])
        y, x = places.clamp(min=0).unbind(-1)
        vectors = torch.cat([self.columns[x], self.rows[y]], dim=-1)
        return torch.where(outside(places)[..., None], 0, vectors)

    def sources(self, sources: Sources, prepared: Tensor, site: Site) -> Sources:
        return in_queries_and_keys(self.name, sources, prepared)


class SinusoidalND(PositionModel, name="sinusoidal-nd"):
    """Sinusoids of any number of coordinates, each in its own channels (tensor2tensor, Vaswani et al. 2018).

    x_u + cat_a [sin(c_a w_0), ..., sin(c_a w_(n-1)), cos(c_a w_0), ..., cos(c_a w_(n-1))],  w_i = 10000^(-i/(n-1)).

    c_a is the coordinate of the unit u on axis a, of which there are A; n = d/(2A), rounded down, and channels beyond 2
    n A are zero. On one axis it is ``sinusoidal-concatenated``. (The function get_timing_signal_nd of the authors of
    the Transformer, whose paper has only sequences.) With n = 1 theirs gives NaN; here w_0 = 1. Units without a place
    in the grid get zeros. Computed in float64, then rounded to the dtype of x.

    Args:
        encoding: coordinates per unit.
        axes: A.

    Raises:
        PositionError: fewer than 2 A channels.
    """

    spec = Spec("vaswani2018", "grid", CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), axes: int = 2) -> None:
        if axes < 1 or dims.width < 2 * axes:
            raise PositionError(
                f"position model {self.name!r} needs 1 axis or more and 2 channels for each; "
                f"given are {axes} axes and {dims.width} channels"
            )
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.axes = axes

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places = coordinates(self.name, self.encodings[0], prepared.queries(self.encodings[0]), self.axes)
        waves = timing(places, self.dims.width // (2 * self.axes) * 2).flatten(-2)
        if not places.is_floating_point():
            waves = torch.where((places < 0).any(-1, keepdim=True), 0, waves)
        return x + functional.pad(waves, (0, self.dims.width - waves.shape[-1])).to(x.dtype)


class Swin(WindowBias, name="swin"):
    """A learned scalar per offset of two patches, within a window (Liu et al. 2021, Swin).

    s_ij += B[(y_i - y_j + H - 1)(2W - 1) + x_i - x_j + W - 1], one scalar per head, layer and offset in H x W.

    B ((2H-1)(2W-1), h) starts from a normal distribution of deviation 0.02, cut off at 2. (Liu et al. 2021, section
    3.2, eq. 4, and their code; what the paper calls B is the matrix that is looked up.) Swin attends within windows of
    H x W patches, and has no larger offset: those windows are ``swin-windows``, and Swin is the sum of both. Offsets
    beyond a window count as those at its edge. On one axis, with a window (W,), it is a bias of sequences.

    Raises:
        PositionError: an invalid window, another number of axes, or a unit that has no place in the grid.
    """

    spec = Spec("liu2021", "grid", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"))

    def __init__(
        self, dims: Dims, encoding: Encoding = GridOffset(), window: tuple[int, ...] = (7, 7), sharing: Sharing = "none"
    ) -> None:
        super().__init__(dims, encoding, WindowRows(self.name, tuple(window), codes=False), sharing)
        nn.init.trunc_normal_(self.table.weight, std=0.02)

    def of_pairs(self, positions: Positions) -> Lookup:
        """The offset of each pair."""
        of_pairs = super().of_pairs(positions)
        if holds((of_pairs.table[:, 0] > OUTSIDE).any()):
            raise PositionError(
                f"position model {self.name!r} got a unit that has no place in the grid, such as a class token; "
                f"take it out, or use 'beit', which has scalars for it"
            )
        return of_pairs


class TimeSformer(PositionModel, name="timesformer"):
    """A learned vector per place of a frame and one per frame of a video (Bertasius et al. 2021, TimeSformer).

    x_tyx + E[1 + y W + x] + T[t], and x + E[0] for the class token: one joint table of space, one of time.

    E (1 + H W, d) starts from a normal distribution of deviation 0.02, cut off at 2, T (F, d) at zero. A video of
    another size H' x W', or of F' frames, has the nearest rows: floor(y H/H'), floor(x W/W'), floor(t F/F'). (Bertasius
    et al. 2021 and their code, in which both are added before the blocks; the paper's eq. 1 has one vector per place
    and frame. There are not three tables of time, row and column.) The class token, which has no place in the grid, has
    no time. In the code a frame of as many patches as H W is never interpolated. The attention, alternating between
    space and time, is not part of this model.

    Args:
        encoding: per unit and axis (time, y, x) the count of places up to it, and of all on the line.
        shape: (F, H, W).
    """

    spec = Spec("bertasius2021", "grid", _added("(1 + H*W + F)*d"))

    def __init__(
        self, dims: Dims, encoding: Encoding = GridRank(axes=3), shape: tuple[int, int, int] = (8, 14, 14)
    ) -> None:
        check_shape(self.name, shape, 3)
        frames, height, width = shape
        super().__init__(dims, [of_whole(self.name, encoding)], F=frames, H=height, W=width)
        self.shape = tuple(shape)
        self.space = nn.Parameter(nn.init.trunc_normal_(torch.empty(1 + height * width, dims.width), std=0.02))
        self.time = nn.Parameter(torch.zeros(frames, dims.width))

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        ranks = counts(self.name, self.encodings[0], prepared.queries(self.encodings[0]), 3)
        places = torch.stack([nearest(ranks[:, :, a], length) for a, length in enumerate(self.shape)], dim=-1)
        in_space = self.space[row_by_row(places[..., 1:], self.shape[1:])]
        in_time = torch.where(outside(places)[..., None], 0, self.time[places[..., 0].clamp(min=0)])
        return x + in_space + in_time


def nearest(ranks: Tensor, length: int) -> Tensor:
    """(b, n) the row, of ``length``, that is nearest to a place of another number of places; -1 for no place.

    Args:
        ranks: (b, n, 2) the count of places up to it, from 1, and of all.
        length: number of rows.
    """
    count, whole = ranks.unbind(-1)
    # float32, as in the authors' interpolation: exact numbers would round differently at a few places.
    scale = torch.tensor(length, dtype=torch.float32, device=ranks.device) / whole.clamp(min=1).float()
    row = ((count - 1).clamp(min=0).float() * scale).floor().long().clamp(max=length - 1)
    return torch.where(whole > 0, row, -1)


class ViT(GridTable, name="vit"):
    """One learned vector per patch of an image, in reading order (Dosovitskiy et al. 2021, ViT).

    x_yx + E[1 + y W + x], and x + E[0] for the class token: one table (1 + H W, d), not one per axis.

    A grid of H x W patches; E starts from N(0, 0.02). (Dosovitskiy et al. 2021, section 3.1, eq. 1; appendix D.4 calls
    it 1-dimensional, and finds the 2-dimensional one, ``vit-2d``, no better.) The authors' table has as many rows as
    the image has tokens, and is ``learned`` by reading order; here a smaller grid is the upper left of H x W. The class
    token is the unit without a place in the grid: see :func:`structpe.transforms.with_class_token`.

    Args:
        encoding: (y, x) per unit.
        shape: (H, W); 14 x 14 are patches of 16 pixels of an image of 224.
    """

    spec = Spec("dosovitskiy2021", "grid", _added("R*d"))

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), shape: tuple[int, int] = (14, 14)) -> None:
        super().__init__(dims, encoding, shape, axes=2)

    def resized(self, shape: tuple[int, int]) -> Self:
        """A model for images of another size, its table interpolated from this one, linearly between corners.

        The vector of the class token stays. (Section 3.2: images larger than those of pre-training.)
        """
        other = type(self)(self.dims, **{**self.options(), "shape": shape}).to(self.table)
        image = self.table[1:].T.reshape(1, -1, *self.shape)
        with torch.no_grad():
            between = functional.interpolate(image, size=tuple(shape), mode="bilinear", align_corners=True)
            other.table.copy_(torch.cat([self.table[:1], between[0].flatten(1).T]))
        return other


class ViT2D(RowsAndColumns, name="vit-2d"):
    """One learned vector per row and one per column of an image (Dosovitskiy et al. 2021, ViT, appendix D.4).

    x_yx + cat[X[1 + x], Y[1 + y]], with tables X (1 + W, d/2) and Y (1 + H, d/2).

    A grid of H x W patches; the tables start from N(0, 0.02). (Dosovitskiy et al. 2021, appendix D.4, "2-dimensional
    positional embedding", X-embedding first.) The paper does not say what its class token gets; here it gets X[0] and
    Y[0].

    """

    spec = Spec("dosovitskiy2021", "grid", _added("(2 + H + W)*d//2"))

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), shape: tuple[int, int] = (14, 14)) -> None:
        super().__init__(dims, encoding, shape)
        self.columns, self.rows = (
            nn.Parameter(torch.randn(1 + length, dims.width // 2) * 0.02) for length in reversed(shape)
        )

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        row, column = (self.places(prepared.queries(self.encodings[0])) + 1).unbind(-1)
        return x + torch.cat([self.columns[column], self.rows[row]], dim=-1)


class ViViT(GridTable, name="vivit"):
    """One learned vector per place and frame of a video (Arnab et al. 2021, ViViT).

    x_tyx + E[1 + (t H + y) W + x], and x + E[0] for the class token: one table (1 + F H W, d) of all tubelets.

    F x H x W tubelets; E starts from N(0, 0.02). (Arnab et al. 2021, section 3.1 and model 1, and their code with
    ``learned_1d``.) It is better to start from a table trained on images: :meth:`start_from` repeats it over time
    (section 3.4). A smaller video uses the first corner of the table. The class token is the unit without a place in
    the grid.

    Of their models with factors of space and time, model 2 reads frames and then a sequence of frames, each stage with
    its own positions: ``vit`` and ``learned``.

    Args:
        encoding: (time, y, x) per unit.
        shape: (F, H, W); 16 x 14 x 14 are tubelets of 2 x 16 x 16 of 32 frames of 224 pixels.
    """

    spec = Spec("arnab2021", "grid", _added("R*d"))

    def __init__(
        self, dims: Dims, encoding: Encoding = Coordinates(axes=3), shape: tuple[int, int, int] = (16, 14, 14)
    ) -> None:
        super().__init__(dims, encoding, shape, axes=3)

    def start_from(self, image: Tensor) -> None:
        """Take the vectors of images for each frame.

        Args:
            image: (1 + H W, d) such as ``ViT.table``, the class token first.

        Raises:
            PositionError: it has another shape.
        """
        frames, height, width = self.shape
        if image.shape != (1 + height * width, self.dims.width):
            raise PositionError(
                f"position model {self.name!r} starts from a table of shape {(1 + height * width, self.dims.width)}, "
                f"one row for the class token and one per place of a frame; given is {tuple(image.shape)}"
            )
        with torch.no_grad():
            self.table.copy_(torch.cat([image[:1], image[1:].repeat(frames, 1)]))
