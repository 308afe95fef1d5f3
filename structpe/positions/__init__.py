"""Position models: what stands for a position and where it enters. One file per model; the registry finds them."""

from structpe.positions.base import MODELS, Cells, Dims, PositionModel, Positions, Site, Spec, Sum

__all__ = ["MODELS", "Cells", "Dims", "PositionModel", "Positions", "Site", "Spec", "Sum"]
