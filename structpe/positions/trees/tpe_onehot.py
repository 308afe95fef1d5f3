"""Tree position encodings without parameters: the path from the root, one-hot (Shiv and Quirk 2019)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from structpe.encodings.branch_path import BranchPath
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec

__all__ = ["TPEOneHot"]


class TPEOneHot(PositionModel, name="tpe-onehot"):
    """Tree position encodings without parameters: the path from the root, one-hot (Shiv and Quirk 2019).

    x_u + [onehot(b_1), onehot(b_2), ..., 0], b_1 the branch to u, b_2 that to its parent, and so on up to the root.

    The vectors of D_max steps in a tree of n branches have D_max n numbers; the rest of the width d is zero, so that
    there are no parameters. (Shiv and Quirk 2019, first version; survey, section 4.3.1.) Table 1 has the second
    version: ``tpe``.

    Args:
        dims: sizes of the Transformer.
        encoding: paths of branches; its depth times its width must not exceed d.

    Raises:
        PositionError: the vectors are wider than the model.
    """

    spec = Spec(
        "shiv2019",
        "tree",
        Cells("A", "APE", learnable=False, recurring=False, unbound=False, params="0"),
        note="Table 1 has the version with parameters: 'tpe'",
    )

    def __init__(self, dims: Dims, encoding: BranchPath | None = None) -> None:
        encoding = encoding or BranchPath(depth=max(1, dims.width // 2))
        super().__init__(dims, [encoding])
        self.space = dims.width - encoding.depth * encoding.width
        if self.space < 0:
            raise PositionError(
                f"position model 'tpe-onehot' has {dims.width} channels, and paths of {encoding.depth} steps among "
                f"{encoding.width} branches need {encoding.depth * encoding.width}; "
                f"give branch-path a smaller depth, or use 'tpe', which projects"
            )

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        paths: Tensor = prepared.queries(self.encodings[0])
        return x + functional.pad(paths.to(x.dtype), (0, self.space))
