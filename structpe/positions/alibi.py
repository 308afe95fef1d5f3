"""Attention with linear biases (Press, Smith and Lewis 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.order import Offset
from structpe.errors import PositionError
from structpe.positions._rows import is_plain, of_arity, offsets
from structpe.positions.base import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.terms import Lookup, Terms

__all__ = ["ALiBi", "slopes"]


class ALiBi(PositionModel, name="alibi"):
    """s_ij -= m_h |r_ij|: each head forgets with distance at a slope m_h of its own, fixed and not learned.

    m_h = 2^(-8h/H) for heads h = 1..H where H is a power of 2, see :func:`slopes` for other H. (Press et al. 2022,
    section 3.) r_ij = s - t, or any other encoding of pairs by signed integers. The authors' code adds m_h s, without
    the place of the query and for causal attention only; after the softmax that is the same.

    Two units of one node that stand k places apart count as k. Pairs without a path count as far as the limit of the
    encoding.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.

    Raises:
        PositionError: a batch has a pair without a path, and the encoding has no limit.
    """

    spec = Spec(
        cite="press2022",
        structure="sequence",
        cells=Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
    )

    like: Tensor

    def __init__(self, dims: Dims, encoding: Encoding = Offset()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 2)])
        # Follows the model to its dtype, so that the bias has it; the slopes themselves would be rounded there.
        self.register_buffer("like", torch.empty(0), persistent=False)

    def prepare(self, positions: Positions) -> Lookup:
        """The bias of each distinct value and head, the same for all layers."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return of_pairs.map(self._bias)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        del site
        return Terms(bias=(prepared,))

    def _bias(self, values: Tensor) -> Tensor:
        far = torch.where(is_plain(values), values, values - WITHIN).abs()
        if self.encodings[0].codes:
            far = torch.where(values == UNREACHABLE, self._farthest(values), far)
        return (-slopes(self.dims.heads).to(values.device) * far[:, None]).to(self.like.dtype)

    def _farthest(self, values: Tensor) -> int:
        limit: int | None = self.encodings[0].options().get("limit")
        if limit is None and bool((values == UNREACHABLE).any()):
            raise PositionError(
                f"position model 'alibi' met a pair of units without a path, which has no distance; give the encoding "
                f"a limit, to count such pairs as that far: {self.encodings[0].name!r} with limit=..."
            )
        return limit or 0


def slopes(heads: int) -> Tensor:
    """(h,) float64: 2^(-8/H), 2^(-16/H), ...; between powers of 2 the lower one's, then every other of the double's."""
    power = 1 << (heads.bit_length() - 1)
    first = 2.0 ** (-8 / power * torch.arange(1, power + 1, dtype=torch.float64))
    rest = 2.0 ** (-4 / power * torch.arange(1, 2 * power + 1, 2, dtype=torch.float64))
    return torch.cat([first, rest[: heads - power]])
