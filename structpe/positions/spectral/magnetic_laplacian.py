"""Eigenvectors of the magnetic Laplacian, for directed graphs (Geisler et al. 2023)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.dropout import Dropout
from structpe.encodings.magnetic_laplacian import MagneticLaplacian as Encoding
from structpe.positions import Dims, PositionModel, Positions, Spec
from structpe.positions._perceptron import count_perceptron
from structpe.positions.spectral._spectrum import learned_cells

__all__ = ["MagneticLaplacian"]


class MagneticLaplacian(PositionModel, name="magnetic-laplacian"):
    """Eigenvectors of the magnetic Laplacian, for directed graphs (Geisler et al. 2023).

    x_u + relu(W cat_j [y_uj] + c),  y_uj = z_uj + attention(norm(z_u))_j,  z_uj = [lambda_j, f(Re v_uj, Im v_uj)].

    v_j are the k lowest eigenvectors of the magnetic Laplacian, whose phases encode the direction of edges; f = relu(A
    . + a) with A (2e, 2), the same for all; z_uj (2e + 1). Attention is over the k eigenvectors of one node: heads of
    width (2e + 1) / heads, rounded down, queries, keys and values without bias, after a layer normalisation; W (d, k
    (2e + 1)). (MagLapNet; Geisler et al. 2023, section 4.1 and figure 5; the authors' code with its settings for
    sorting networks: no average over signs, phases fixed by the encoding.) Missing eigenvectors, of graphs with less
    than k nodes, are masked and count 0. The code also masks eigenvalues of 0 except the first; here they count.

    Args:
        dims: sizes of the Transformer.
        encoding: the eigenvectors and eigenvalues.
        elements: e; 8 of a model of width 256 in the code.
        heads: of the attention over eigenvectors.
        dropout: of its output and weights.
    """

    spec = Spec(
        "geisler2023",
        "graph",
        learned_cells(
            f"{count_perceptron('2', '2*e')} + 2*(2*e + 1) + 3*(2*e + 1)*w + (w + 1)*(2*e + 1) + "
            f"{count_perceptron('k*(2*e + 1)', 'd')}"
        ),
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Encoding(), elements: int = 8, heads: int = 4, dropout: float = 0.1
    ) -> None:
        inner = 2 * elements + 1
        each = max(inner // heads, 1)
        super().__init__(dims, [encoding], k=encoding.k, e=elements, w=heads * each)
        self.of_each = nn.Linear(2, 2 * elements)
        self.norm = nn.LayerNorm(inner)
        self.attention = _Attention(inner, heads, each, dropout)
        self.dropout = Dropout(dropout)
        self.out = nn.Linear(encoding.k * inner, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, d) the term to add."""
        pairs = positions.queries(self.encodings[0]).to(self.out.weight.dtype)
        values, there = pairs[..., 2:], pairs[..., 2] >= 0
        z = torch.cat([values, functional.relu(self.of_each(pairs[..., :2]))], dim=-1)
        z = (z + self.attention(self.norm(z), there)) * there[..., None]
        return functional.relu(self.out(self.dropout(z.flatten(2))))

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return x + prepared.to(x.dtype)


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int, each: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.each = heads, each
        self.query, self.key, self.value = (nn.Linear(width, heads * each, bias=False) for _ in range(3))
        self.dropout = Dropout(dropout)
        self.out = nn.Linear(heads * each, width)

    def forward(self, z: Tensor, there: Tensor) -> Tensor:
        """(b, n, k, width) among the k that exist; if none does, among all."""
        q, k, v = (
            part(z).unflatten(-1, (self.heads, self.each)).transpose(2, 3)
            for part in (self.query, self.key, self.value)
        )
        score = q @ k.transpose(-1, -2) / math.sqrt(self.each)
        masked = ~there & there.any(-1, keepdim=True)
        weights = self.dropout(score.masked_fill(masked[:, :, None, None], -math.inf).softmax(-1))
        out: Tensor = self.out((weights @ v).transpose(2, 3).flatten(3))
        return out
