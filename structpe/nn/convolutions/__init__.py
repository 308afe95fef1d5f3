"""Message passing along edges: one convolution per file, found by its name; others of PyTorch Geometric by a path."""

from structpe.nn.convolutions.base import CONVOLUTIONS, Convolution
from structpe.nn.convolutions.choosing import Asked, Choice, chosen

__all__ = ["CONVOLUTIONS", "Asked", "Choice", "Convolution", "chosen"]
