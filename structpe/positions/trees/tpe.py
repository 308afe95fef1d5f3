"""Tree position encodings with decay parameters (Shiv and Quirk 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.branch_path import BranchPath
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.precision import wide

__all__ = ["TPE"]


class TPE(PositionModel, name="tpe"):
    """Tree position encodings with decay parameters (Shiv and Quirk 2019).

    x_u + e_u with e_u[k, b, f] = onehot(b_k)[b] p_f^k sqrt((1 - p_f^2) d/2),  p = tanh(theta).

    b_0 is the branch to u, b_1 that to its parent, and so on for D_max steps; b < n branches; f < F copies, each with a
    learned decay p_f towards the root. The channel of e_u is (k n + b) F + f. If the model has another number of
    channels than these D_max n F, a linear layer with bias maps them. (Shiv and Quirk 2019, second version, and their
    code; survey, section 4.3.1.)

    Table 1 counts d/D_max parameters: F of them where the channels fit, less the factor n. theta starts as in another
    implementation, from U(0.7, 0.999); the authors' initialisation is not known.

    Args:
        dims: sizes of the Transformer.
        encoding: paths of branches; D_max and n are its depth and width.
        copies: F, the number of decays.

    Raises:
        PositionError: there is no copy.
    """

    spec = Spec(
        "shiv2019",
        "tree",
        Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="F + linear"),
        table1=Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="d/D_max"),
        note="Table 1 leaves out the number of branches, d/(D_max n), and the linear layer of widths that do not fit",
    )

    def __init__(self, dims: Dims, encoding: BranchPath = BranchPath(), copies: int = 4) -> None:
        channels = encoding.depth * encoding.width * copies
        fits = channels == dims.width
        super().__init__(dims, [encoding], F=copies, linear=0 if fits else (channels + 1) * dims.width)
        self.theta = nn.Parameter(torch.empty(copies).uniform_(0.7, 0.999))
        self.project: nn.Module = nn.Identity() if fits else nn.Linear(channels, dims.width)
        self.depth, self.width = encoding.depth, encoding.width

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        paths: Tensor = prepared.queries(self.encodings[0])
        added: Tensor = self.project((paths[..., None] * self._decays()).flatten(-2).to(x.dtype))
        return x + added

    def _decays(self) -> Tensor:
        """(D_max n, F) what each one-hot entry weighs in each copy."""
        decay = torch.tanh(wide(self.theta))
        steps = torch.arange(self.depth, device=decay.device).repeat_interleave(self.width)
        weights: Tensor = decay ** steps[:, None] * ((1 - decay**2) * self.dims.width / 2).sqrt()
        return weights
