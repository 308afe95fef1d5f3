"""A Transformer that reads a node's entries of all eigenvectors as a set, each with its eigenvalue."""

from __future__ import annotations

from torch import Tensor, nn

from structpe.errors import PositionError
from structpe.positions.spectral._spectrum import Spectrum

__all__ = ["SpectralTransformer", "transformer_width"]


class SpectralTransformer(nn.Module):
    """sum_j T(A [v_uj, lambda_j] + a)_j, over the existing eigenvectors j: (b, n, p).

    T is a Transformer over the k eigenvectors of one node, with post-normalisation, as PyTorch's default.

    Args:
        width: p.
        heads: of T; they must divide p.
        layers: of T.
        feedforward: hidden width of T.
        dropout: inside T.
    """

    def __init__(self, width: int, heads: int, layers: int, feedforward: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.embed = nn.Linear(2, width)
        layer = nn.TransformerEncoderLayer(width, heads, feedforward, dropout, batch_first=True)
        self.mix = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, spectrum: Spectrum) -> Tensor:
        """Of the units of a batch."""
        missing = ~spectrum.there.flatten(0, 1)
        unseen = missing & ~missing.all(-1, keepdim=True)  # of units without any, so that no row is masked whole
        mixed = self.mix(self.embed(spectrum.pairs().flatten(0, 1)), src_key_padding_mask=unseen)
        summed: Tensor = mixed.masked_fill(missing[..., None], 0).sum(1)
        return summed.view(*spectrum.vectors.shape[:2], -1)

    @staticmethod
    def count(width: str, layers: str, feedforward: str) -> str:
        """Formula of its number of parameters."""
        p, f = width, feedforward
        return f"3*{p} + {layers}*(4*{p}*{p} + 9*{p} + 2*{p}*{f} + {f})"


def transformer_width(model: str, width: int | None, heads: int, of_all: int) -> int:
    """p: as given, or a quarter of the model's width, 4 at least, rounded up to what the heads divide.

    Raises:
        PositionError: the heads do not divide it.
    """
    if width is None:
        return -(-max(of_all // 4, 4) // heads) * heads
    if heads < 1 or width % heads:
        raise PositionError(f"position model {model!r}: {heads} heads do not divide {width} channels; give others")
    return width
