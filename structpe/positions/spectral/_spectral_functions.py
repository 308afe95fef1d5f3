"""Functions of the Laplacian, learned: what the models of Huang et al. (2024) share."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.positions._perceptron import count_perceptron, perceptron
from structpe.positions.spectral._spectrum import Spectrum

__all__ = ["SpectralFunctions"]


class SpectralFunctions(nn.Module):
    """relu(E W_uw + e),  W^m_uw = sum_j v_uj psi_m(lambda_j) v_wj, with an MLP of one hidden layer psi_m for each m.

    E and e, the linear layer that a model has first, are applied to psi_m(lambda_j): k vectors in place of n^2.

    Args:
        functions: M, how many.
        hidden: width inside each.
    """

    def __init__(self, functions: int, hidden: int) -> None:
        super().__init__()
        self.psi = nn.ModuleList(perceptron([1, hidden, 1]) for _ in range(functions))

    def forward(self, left: Tensor, spectrum: Spectrum, present: Tensor, linear: nn.Linear) -> Tensor:
        """(b, n, n, c) of all pairs of units.

        Args:
            left: (b, n, k) v_uj, or sums of these over other units.
            spectrum: v_wj and lambda_j.
            present: (b, n) which units are real.
            linear: E and e, from M to c.
        """
        values, _ = spectrum.of_structures(present)
        mapped = functional.linear(self._of_values(values), linear.weight)  # (b, k, c)
        right = spectrum.vectors.transpose(1, 2)[..., None] * mapped[:, :, None]  # (b, k, n, c)
        product = torch.baddbmm(linear.bias.repeat(right.shape[2]), left, right.flatten(2))
        # In place before the view: after it, the gradient would be copied.
        return product.relu_().view(*product.shape[:2], *right.shape[2:])

    def _of_values(self, values: Tensor) -> Tensor:
        """(b, k, M) psi of eigenvalues (b, k): all networks at once."""
        enter, leave = ([cast(nn.Linear, psi[layer]) for psi in self._each()] for layer in (0, 2))
        weight, bias = torch.stack([x.weight[:, 0] for x in enter]), torch.stack([x.bias for x in enter])
        hidden = torch.relu(values[..., None, None] * weight + bias)  # (b, k, M, hidden)
        weight, bias = torch.cat([x.weight for x in leave]), torch.cat([x.bias for x in leave])
        return (hidden * weight).sum(-1) + bias

    def _each(self) -> list[nn.Sequential]:
        return [cast(nn.Sequential, psi) for psi in self.psi]

    @staticmethod
    def count(functions: str, hidden: str) -> str:
        """Formula of its number of parameters."""
        return f"{functions}*({count_perceptron('1', hidden, '1')})"
