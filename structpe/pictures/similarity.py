"""The similarity of the vectors that position models add to the input (Chen et al. 2021, appendix C, figure 5).

The figure shows the distribution of cosines between all pairs of absolute positions, for a BERT and for one that also
has DIET-ABS, where all positions at the input have become similar. The paper uses learned tables. Here, the vectors are
the output of any model of the registry for an input of zeros, for positions in a sequence or nodes of a structure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structpe.pictures import heat
from structpe.pictures.style import LINES, PictureError, add_bar, figure, fitting, look, settle
from structpe.positions import PositionModel, Site
from structpe.positions.batch import encode
from structpe.structure import Structure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["cosines", "draw", "pairs", "vectors"]

BINS = 60
SMALL = 1e-12


@torch.no_grad()
def vectors(model: PositionModel, structure: Structure) -> Tensor:
    """(n, d) the input of the first layer, for vectors of zeros.

    Args:
        model: trained, or from :func:`model_of` with random parameters.
        structure: the structure of the units.

    Raises:
        PictureError: the model adds nothing to the input.
        EncodingError, PositionError: the model does not fit the structure.
    """
    if not model.sites & {"inputs", "layer"}:
        raise PictureError(
            "the position model adds nothing to the input, so there are no vectors to compare; choose one that "
            "does, such as 'learned' or 'sinusoidal'"
        )
    kind = next((p.dtype for p in model.parameters()), torch.float32)
    prepared = model.prepare(encode([structure], model.encodings).to(torch.device("cpu"), kind))
    x = model.inputs(torch.zeros(1, structure.unit_count, model.dims.width, dtype=kind), prepared)
    out: Tensor = model.layer(x, prepared, Site(0))[0]
    return out


def cosines(rows: Tensor) -> Tensor:
    """(n, n) cos(p_i, p_j) of rows p (n, d); NaN if one of them is zero."""
    length = rows.norm(dim=-1, keepdim=True)
    unit = torch.where(length > SMALL, rows / length.clamp(min=SMALL), torch.nan)
    return (unit @ unit.T).clamp(-1, 1)


def pairs(matrix: Tensor) -> NDArray[np.float64]:
    """(n (n-1) / 2,) the defined values of all pairs of different places, each once."""
    each = matrix[tuple(torch.triu_indices(len(matrix), len(matrix), offset=1))].double().numpy()
    kept: NDArray[np.float64] = each[np.isfinite(each)]
    return kept


def draw(matrices: Mapping[str, Tensor], title: str = "") -> Figure:
    """Plot the matrix of cosines for each model, and below it their distribution over pairs.

    Args:
        matrices: by name of the model, from :func:`cosines`.
        title: title of the picture.

    Raises:
        MissingExtra: matplotlib is not installed.
        PictureError: a model has no defined cosine.
    """
    for name, matrix in matrices.items():
        if not len(pairs(matrix)):
            raise PictureError(
                f"no cosine of {name!r} is defined: fewer than two of its vectors are other than zero (a model that "
                f"multiplies its input makes zeros of zeros); leave it out"
            )
    with look():
        picture = figure(2.7 * len(matrices) + 0.9, 4.4)
        picture.suptitle(
            fitting(title, (2.7 * len(matrices) + 0.7) / 1.15, 10), x=0.01, ha="left", fontsize=10, fontweight="bold"
        )
        grid = picture.subplots(2, len(matrices), squeeze=False, height_ratios=(2, 1), sharex="row")
        drawn = None
        for (name, matrix), above, below in zip(matrices.items(), *grid, strict=True):
            drawn = above.imshow(matrix.numpy(), cmap=heat.MAPS["diverging"], vmin=-1, vmax=1, aspect="equal",
                                 interpolation="nearest")  # fmt: skip
            above.set_title(fitting(name, 2.2, 8), fontsize=8)
            above.set(xticks=[], yticks=[])
            above.spines[:].set_visible(False)
            below.hist(pairs(matrix), bins=np.linspace(-1, 1, BINS + 1), density=True, color=LINES[0])
            below.set(xlim=(-1, 1), yticks=[], xlabel="cosine of a pair")
            below.spines[["top", "right", "left"]].set_visible(False)
        if drawn is not None:
            add_bar(picture, drawn, grid[0, :], 0.8, 16)
        grid[1, 0].set_ylabel("pairs")
        settle(picture)
    return picture
