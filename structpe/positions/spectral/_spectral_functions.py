"""Functions of the Laplacian, learned: what the models of Huang et al. (2024) share."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.positions._perceptron import count_perceptron, perceptron
from structpe.positions.spectral._spectrum import Spectrum

__all__ = ["SpectralFunctions"]


class SpectralFunctions(nn.Module):
    """W^m_uw = sum_j v_uj psi_m(lambda_j) v_wj, with an MLP of one hidden layer psi_m for each m.

    Args:
        functions: M, how many.
        hidden: width inside each.
    """

    def __init__(self, functions: int, hidden: int) -> None:
        super().__init__()
        self.psi = nn.ModuleList(perceptron([1, hidden, 1]) for _ in range(functions))

    def forward(self, spectrum: Spectrum) -> Tensor:
        """(b, n, n, M)."""
        of_values = torch.cat([psi(spectrum.values[..., None]) for psi in self.psi], dim=-1)
        result: Tensor = torch.einsum("buk,bukm,bwk->buwm", spectrum.vectors, of_values, spectrum.vectors)
        return result

    @staticmethod
    def count(functions: str, hidden: str) -> str:
        """Formula of its number of parameters."""
        return f"{functions}*({count_perceptron('1', hidden, '1')})"
