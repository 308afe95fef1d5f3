"""A graph network over random vectors of the nodes, averaged over many of them (Kanatsoulis et al. 2025, R-PEARL)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.endpoints import Endpoints
from structpe.positions import Cells, Dims, Positions, Spec
from structpe.positions.spectral._nodes import Nodes
from structpe.positions.spectral._pearl import Pearl

__all__ = ["RPearl"]


class RPearl(Pearl, name="r-pearl"):
    """A graph network over random vectors of the nodes, averaged over many of them (Kanatsoulis et al. 2025, R-PEARL).

    x_u + U mean_m phi(relu(A [w_m, L w_m, ..., L^(K-1) w_m] + a))_u + c,  w_m (n) of independent normal numbers.

    L = I - D^-1/2 A D^-1/2, m = 1..M; phi is a graph network, x_i <- MLP((1 + eps) x_i + sum of its neighbours), that
    runs on each m by itself; A (w, K), U (d, p). It costs no eigenvectors, and its expectation does not depend on the
    numbers of nodes. (Kanatsoulis et al. 2025; the authors' code, whose configuration for ZINC has M 120, K 1 and phi
    of 8 layers.) ``b-pearl`` takes unit vectors for w_m.

    In training the w_m are drawn for each batch. In evaluation those of a structure of n nodes come from a generator
    with a fixed seed, so that they are always the same; their rows go to nodes in reading order. Nodes without an order
    are read by their numbers, so that other numbers give another sample of the same mean.

    Unlike the code: mean instead of sum over m, so that M can change after training; no batch normalisation, and MLPs
    with one hidden layer. An edge counts in both directions, self-loops do not count, and the result for a node does
    not depend on its number of units.

    Args:
        dims: sizes of the Transformer.
        samples: M.
        powers: K.
        hidden: w, also the width inside phi.
        width: p.
        layers: of phi.
        seed: of the generator in evaluation.
    """

    spec = Spec(
        "kanatsoulis2025",
        "graph",
        Cells("A", "APE", learnable=True, recurring=False, unbound=True, params=Pearl.params),
        not_compiled="how much noise it draws depends on the batch",
        not_exported="how much noise it draws depends on the batch",
    )

    def __init__(
        self,
        dims: Dims,
        samples: int = 64,
        powers: int = 1,
        hidden: int = 32,
        width: int = 16,
        layers: int = 2,
        seed: int = 0,
    ) -> None:
        self.endpoints, self.samples, self.seed = Endpoints(), samples, seed
        super().__init__(dims, [self.endpoints], powers, hidden, width, layers)

    def vectors(self, positions: Positions, nodes: Nodes) -> Tensor:
        place = torch.where(nodes.present, positions[self.endpoints][..., 0], 0)
        noise = self._drawn([most + 1 for most in place.amax(1).tolist()], place.device)
        sizes = torch.tensor([len(each) for each in noise], device=place.device)
        rows = (sizes.cumsum(0) - sizes)[:, None] + place
        return torch.cat(noise).to(nodes.shares.dtype)[rows]

    def pooled(self, x: Tensor, nodes: Nodes) -> tuple[Tensor, Tensor]:
        return x.mean(2), x.new_ones(1, 1, 1)

    def _drawn(self, counts: list[int], device: torch.device) -> list[Tensor]:
        """Per structure (n, M)."""
        if self.training:
            return [torch.randn(n, self.samples, device=device) for n in counts]
        generators = {n: torch.Generator().manual_seed(self.seed) for n in counts}
        drawn = {n: torch.randn(n, self.samples, generator=each).to(device) for n, each in generators.items()}
        return [drawn[n] for n in counts]
