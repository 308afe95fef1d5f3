"""What eigenvectors of directed graphs say of pairs, whatever their phases and bases are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.laplacian import MultiQMagnetic
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.networks import count_perceptron, perceptron
from structpe.positions.spectra import of_structures
from structpe.terms import Terms

__all__ = ["MultiQMagneticBias", "Spectra"]


@dataclass(frozen=True, eq=False)
class Spectra:
    """Several spectra of each structure of a batch, c of each k eigenvectors; entries and values of missing ones are 0.

    Attributes:
        queries: real and imaginary part of the entries.
        keys: the same of the keys.
        values: eigenvalues.
    """

    queries: Float[Tensor, "2 b n c k"]
    keys: Float[Tensor, "2 b m c k"]
    values: Float[Tensor, "b c k"]


class MultiQMagneticBias(PositionModel, name="multi-q-magnetic"):
    """A bias by stable functions of several magnetic Laplacians, for directed graphs (Huang et al. 2025).

    s_ij += W_2 relu(W_1 [Re g_ij; Im g_ij] + a) + b of the head, g_ij (c, M) = sum_k conj(v_cik) v_cjk phi(lambda_ck).

    v_ck and lambda_ck are the lowest eigenpairs of c magnetic Laplacians; phi, from one eigenvalue to M numbers, is a
    network with two hidden layers, the same for all c; W_1 (c M, 2 c M), W_2 (h, c M). Each layer has its own networks.
    Phases of eigenvectors and bases of eigenspaces change nothing, unless k divides an eigenspace, and a small change
    of the graph changes little. (Huang et al. 2025; their code, ``DenseComplexNetwork`` as the bias of a graph
    transformer, in which the conjugate is that of the query. Compared with it in float64.) Memory grows with n^2 times
    the width c M.

    Args:
        encoding: the eigenpairs.
        functions: M, 16 in the code.
        hidden: width inside phi.
    """

    spec = Spec(
        "huang2025",
        "graph",
        Cells(
            "B",
            "MAM",
            learnable=True,
            recurring=True,
            unbound=True,
            params=f"l*({count_perceptron('1', 'w', 'w', 'm')} + {count_perceptron('2*c*m', 'c*m', 'h')})",
        ),
    )

    def __init__(
        self, dims: Dims, encoding: MultiQMagnetic = MultiQMagnetic(), functions: int = 8, hidden: int = 32
    ) -> None:
        super().__init__(dims, [encoding], c=encoding.charges, m=functions, w=hidden)
        width = encoding.charges * functions
        self.phi = nn.ModuleList(perceptron([1, hidden, hidden, functions]) for _ in range(dims.layers))
        self.readout = nn.ModuleList(perceptron([2 * width, width, dims.heads]) for _ in range(dims.layers))

    def prepare(self, positions: Positions) -> Spectra:
        """The eigenpairs, the same for all layers."""
        (encoding,) = self.encodings
        dtype = next(self.phi.parameters()).dtype
        queries, keys = (read(encoding).to(dtype).movedim(-1, 0) for read in (positions.queries, positions.__getitem__))
        present = keys.new_ones(keys.shape[1:3], dtype=torch.bool) if positions.present is None else positions.present
        values = of_structures(keys[2].flatten(2), present).clamp(min=0)
        return Spectra(queries[:2], keys[:2], values.view(len(values), *keys.shape[3:]))

    def terms(self, prepared: Spectra, site: Site) -> Terms:
        """The first layer of the readout is applied to phi(lambda): c k vectors in place of n^2."""
        enter, _, leave = cast(nn.Sequential, self.readout[site.layer])
        of_values = self.phi[site.layer](prepared.values[..., None])  # (b, c, k, m)
        parts = torch.unflatten(cast(nn.Linear, enter).weight, 1, (2, self.sizes["c"], -1))
        real, imaginary = torch.einsum("bckm,rpcm->pbckr", of_values, parts)[:, :, None].unbind()
        x, y = prepared.keys[..., None].unbind()  # (b, m, c, k, 1)
        right = torch.stack([x * real + y * imaginary, y * real - x * imaginary], dim=1)  # (b, 2, m, c, k, r)
        left = prepared.queries.movedim(0, 2).flatten(2)
        met = left @ right.movedim(2, 4).flatten(1, 3).flatten(2)  # (b, 2 c k) to m r
        bias = cast(nn.Linear, enter).bias
        seen = functional.relu(torch.unflatten(met, 2, (-1, len(bias))) + bias)
        return Terms(bias=(leave(seen).movedim(-1, 1),))
