"""Nodes and edges as tokens, whose ends are identified by orthogonal random features (Kim et al. 2022)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from structpe.encodings.endpoints import Endpoints
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions.spectral._identifiers import Identify

__all__ = ["TokenGTORF"]


class TokenGTORF(PositionModel, name="tokengt-orf"):
    """Nodes and edges as tokens, whose ends are identified by orthogonal random features (Kim et al. 2022).

    x_t + W [P_u, P_v] + E[u = v], P_u row u of a random orthogonal matrix: token t is the node u = v or the edge uv.

    For m nodes the matrix is (m, m); of each row the first k numbers are taken, or zeros added up to k, and the row is
    brought to length 1 again. W (d, 2k) without bias, E (2, d). The tokens are made by
    :func:`structpe.transforms.edge_tokens.edge_tokens`; in any other structure every unit is a node. (Kim et al. 2022,
    section 2.2; the authors' code, whose matrix has the size of the largest graph of a batch, so that a small graph
    gets different features in a batch with a large one; here each has its own.)

    In training the matrices are drawn for each batch. In evaluation the matrix of a structure of m nodes is drawn from
    a generator with a fixed seed. Its rows go to nodes in reading order, so that a text is always represented alike;
    in a structure without an order they go by number, and the same graph numbered otherwise is represented otherwise.

    Args:
        dims: sizes of the Transformer.
        width: k.
        seed: of the generator in evaluation.

    Raises:
        PositionError: k is below 1.
    """

    spec = Spec(
        "kim2022",
        "graph",
        Cells("A", "APE", learnable=True, recurring=False, unbound=True, params="2*k*d + 2*d"),
        not_compiled="how much noise it draws depends on the batch",
        not_exported="how much noise it draws depends on the batch",
    )

    def __init__(self, dims: Dims, width: int = 64, seed: int = 0) -> None:
        super().__init__(dims, [Endpoints()], k=width)
        self.width, self.seed = width, seed
        self.identify = Identify(width, dims.width)

    @property
    def causal(self) -> bool:
        """No: with every node that is added there is another matrix."""
        return False

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, d) the term to add."""
        ends: Tensor = positions[self.encodings[0]]
        if positions.present is not None:
            ends = ends * positions.present[..., None]
        last = ends.flatten(1).amax(1)
        which = torch.arange(len(ends), device=ends.device)[:, None].expand(ends.shape[:2])
        return self.added(self.draw([most + 1 for most in last.tolist()], ends.device), ends, which)

    def draw(self, counts: list[int], device: torch.device) -> list[Tensor]:
        """Per structure a random orthogonal matrix (m, m), m its number of nodes."""
        if self.training:
            return [_orthogonal(torch.randn(m, m, device=device)) for m in counts]
        drawn = {m: _orthogonal(torch.randn(m, m, generator=self._generator())).to(device) for m in set(counts)}
        return [drawn[m] for m in counts]

    def added(self, matrices: list[Tensor], ends: Tensor, which: Tensor) -> Tensor:
        """(b, n, d) from a matrix per structure, the ends (b, n, 2) of the tokens, and (b, n) whose these are."""
        table = torch.cat([_cut(matrix, self.width) for matrix in matrices]).to(self.identify.types.dtype)
        sizes = torch.tensor([len(matrix) for matrix in matrices], device=ends.device)
        rows = (sizes.cumsum(0) - sizes)[which][..., None] + ends
        added: Tensor = self.identify(table[rows].flatten(-2), ends)
        return added

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return x + prepared.to(x.dtype)

    def _generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed)


def _orthogonal(gaussian: Tensor) -> Tensor:
    orthogonal: Tensor = torch.linalg.qr(gaussian)[0].T
    return orthogonal


def _cut(matrix: Tensor, width: int) -> Tensor:
    """(m, width) rows of length 1."""
    cut = functional.pad(matrix[:, :width], (0, max(width - matrix.shape[1], 0)))
    return functional.normalize(cut, dim=1)
