"""Eigenvectors with their eigenvalues, read by a Transformer, concatenated with the content (Rampasek et al. 2022)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.eigenpairs import Eigenpairs
from structpe.positions import Dims, PositionModel, Positions, Spec
from structpe.positions._concatenated import concatenated, position_width
from structpe.positions.spectral._spectral_transformer import SpectralTransformer, transformer_width
from structpe.positions.spectral._spectrum import Spectrum, learned_cells

__all__ = ["LapPETransformer"]


class LapPETransformer(PositionModel, name="lap-pe-transformer"):
    """Eigenvectors with their eigenvalues, read by a Transformer, concatenated with the content (Rampasek et al. 2022).

    cat[x_u, sum_j T(A [s_j v_uj, lambda_j] + a)_j], j running over the k lowest eigenvectors that the graph has.

    T is a Transformer over the k eigenvectors of one node, of width p; s_j a random sign for each eigenvector and batch
    in training, 1 in evaluation. (GraphGPS's LapPE with its Transformer; Rampasek et al. 2022; Kreuzer et al. 2021, the
    input of ``san``.) All else is as in ``lap-pe``.

    Args:
        dims: sizes of the Transformer.
        encoding: eigenvectors and eigenvalues, the trivial one among them as in the code.
        width: p; None for a quarter of the model's width, 4 at least, rounded up to what the heads divide.
        heads: of T.
        layers: of T.
        feedforward: hidden width of T; PyTorch's default in the code.

    Raises:
        PositionError: p leaves no channels for content, or the heads do not divide it.
    """

    spec = Spec("rampasek2022", "graph", learned_cells(SpectralTransformer.count("p", "m", "f")))

    def __init__(
        self,
        dims: Dims,
        encoding: Eigenpairs = Eigenpairs(),
        width: int | None = None,
        heads: int = 2,
        layers: int = 1,
        feedforward: int = 2048,
    ) -> None:
        p = position_width(self.name, transformer_width(self.name, width, heads, dims.width), dims.width)
        super().__init__(dims, [encoding], p=p, m=layers, f=feedforward)
        self.eigenpairs = encoding
        self.of_all = SpectralTransformer(p, heads, layers, feedforward)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, p) the sum over eigenvectors."""
        spectrum = Spectrum.of(positions, self.eigenpairs, self.of_all.embed.weight.dtype)
        summed: Tensor = self.of_all(spectrum.flipped() if self.training else spectrum)
        return summed

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return concatenated(x, prepared)
