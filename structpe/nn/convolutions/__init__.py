"""Message passing along edges: one convolution per file, found by its name."""

from structpe.nn.convolutions.base import CONVOLUTIONS, Convolution

__all__ = ["CONVOLUTIONS", "Convolution"]
