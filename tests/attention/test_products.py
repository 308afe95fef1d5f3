"""Products of three vectors of each pair, channel by channel, are those of a sum over all at once."""

from __future__ import annotations

import pytest
import torch

from structpe.attention import products
from structpe.terms import Toeplitz
from tests.together import together

SHAPES = {  # b, h, n, m, d; structures and heads of the table, structures of the index
    "shared": ((2, 3, 7, 5, 4), (1, 1, 1)),
    "of structures": ((2, 3, 7, 5, 4), (2, 1, 2)),
    "of heads": ((3, 2, 6, 9, 2), (1, 2, 1)),
    "own rows": ((3, 2, 6, 9, 2), (3, 2, 1)),
    "own index": ((3, 2, 6, 9, 2), (1, 1, 3)),
    "one query": ((2, 5, 1, 4, 3), (1, 1, 1)),
    "one key": ((5, 1, 4, 1, 3), (1, 1, 5)),
}


@together("cells", [1, 64, 1 << 18])
@together("diagonals", [True, False])
@together("name", SHAPES)
def test_products_and_gradients_are_those_of_the_sum(
    name: str, diagonals: bool, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "CELLS", cells)
    (b, h, n, m, d), (tables, heads, indices) = SHAPES[name]
    draw = {"dtype": torch.float64, "requires_grad": True}
    q, k = torch.randn(b, h, n, d, **draw), torch.randn(b, h, m, d, **draw)
    rows = torch.randn(tables, 6, heads, d, **draw)
    index = torch.randint(6, (indices, n + m - 1) if diagonals else (indices, n, m), dtype=torch.int16)
    given = Toeplitz(index, n, m) if diagonals else index
    of_pairs = torch.stack([rows[i % tables][_places(index, n, diagonals)[i % indices]] for i in range(b)])
    plain = torch.einsum("bhic,bhjc,bijhc->bhij", q, k, of_pairs.expand(b, n, m, h, d))
    mine = products._Products.apply(q, k, rows, given)
    torch.testing.assert_close(mine, plain)
    weigh = torch.randn_like(plain)
    for one, other in zip(*(torch.autograd.grad(x, (q, k, rows), weigh) for x in (mine, plain)), strict=True):
        torch.testing.assert_close(one, other)


def _places(index: torch.Tensor, n: int, diagonals: bool) -> torch.Tensor:
    """(b', n, m)."""
    if not diagonals:
        return index.long()
    return torch.stack([index[:, n - 1 - i : index.shape[1] - i] for i in range(n)], dim=1).long()
