"""Eigenvectors with their eigenvalues as a set, concatenated with the content (Rampasek et al. 2022)."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from structpe.encodings.eigenpairs import Eigenpairs
from structpe.positions import Dims, PositionModel, Positions, Spec
from structpe.positions._concatenated import concatenated, position_width
from structpe.positions.spectral._spectrum import Spectrum, learned_cells

__all__ = ["LapPE"]


class LapPE(PositionModel, name="lap-pe"):
    """Eigenvectors with their eigenvalues as a set, concatenated with the content (Rampasek et al. 2022).

    cat[x_u, sum_j f([s_j v_uj, lambda_j])], j running over the k lowest eigenvectors that the graph has.

    f is an MLP with a rectifier after each of its ``layers`` layers, the inner ones of width 2p, the last of width p;
    s_j a random sign for each eigenvector and batch in training, 1 in evaluation. (GraphGPS's LapPE with its DeepSet;
    Rampasek et al. 2022; after Kreuzer et al. 2021, whose Transformer over eigenvectors is ``lap-pe-transformer``.) x
    is the content in the other d - p channels: the last p channels of the input of the layers are overwritten. The
    code's six scales of eigenvectors are options of the encoding, its layers after the sum are not included. Self-loops
    count in the Laplacian, as in SAN's code; GraphGPS's removes them, and adds up parallel edges.

    Args:
        dims: sizes of the Transformer.
        encoding: eigenvectors and eigenvalues, the trivial one among them as in the code.
        width: p; None for a quarter of the model's width, 4 at least.
        layers: of f.

    Raises:
        PositionError: p leaves no channels for content, or there is no layer.
    """

    spec = Spec(
        "rampasek2022", "graph", learned_cells("3*p if m == 1 else 3*2*p + (m - 2)*(2*p + 1)*2*p + (2*p + 1)*p")
    )

    def __init__(
        self, dims: Dims, encoding: Eigenpairs = Eigenpairs(), width: int | None = None, layers: int = 2
    ) -> None:
        p = position_width(self.name, max(dims.width // 4, 4) if width is None else width, dims.width)
        super().__init__(dims, [encoding], p=p, m=layers)
        self.eigenpairs = encoding
        widths = [2, *[2 * p] * (layers - 1), p]
        each = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(widths)]
        self.of_each = nn.Sequential(*each)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, p) the sum over eigenvectors."""
        spectrum = Spectrum.of(positions, self.eigenpairs, next(self.parameters()).dtype)
        spectrum = spectrum.flipped() if self.training else spectrum
        summed: Tensor = self.of_each(spectrum.pairs()).masked_fill(~spectrum.there[..., None], 0).sum(-2)
        return summed

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return concatenated(x, prepared)
