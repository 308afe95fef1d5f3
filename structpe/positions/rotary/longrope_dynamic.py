"""LongRoPE with factors that grow with the length of the text (Ding et al. 2024, their code)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.encodings.size import Size
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Spec
from structpe.positions._checks import holds
from structpe.positions.rotary._long_factors import factors_of, sharper
from structpe.positions.rotary._turns import DynamicRotaryModel, check_longer, length_of
from structpe.positions.sinusoidal._sinusoids import inverse_frequencies

__all__ = ["LongRoPEDynamic"]


class LongRoPEDynamic(DynamicRotaryModel, name="longrope-dynamic"):
    """LongRoPE with factors that grow with the length of the text (Ding et al. 2024, their code).

    ``longrope`` with the factors 1 + (lambda_i - 1) (L/L' - 1) / (a - 1), L being the number of units of the text.

    At L = L' pairs turn as in training, at L = a L' as in ``longrope``. As in the authors' code the line goes on below
    L' and beyond a L': in a text shorter than L' pairs turn faster than in training. L is of each text; decoders cannot
    use it, because a text that grows changes the angles of its first units.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        length: L, one number per unit.
        base: b.
        factors: lambda, d_h/2 positive numbers; the default is that of ``longrope``.
        scale: a, above 1.
        trained: L', 2 or more.
        longer: the factor of queries and keys; None as in ``longrope``.

    Raises:
        PositionError: the width of a head is odd, a scale of 1 or less, a length below 2, another number of factors, a
            vector per unit, a ``longer`` of 0 or less, or a text so short that the line leads to factors of 0 or less.
    """

    spec = Spec(
        "ding2024",
        "sequence",
        Cells("B", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
        note="angles follow from offsets and from the length of the text, which more text in front changes",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        length: Encoding = Size(),
        base: float = 10000.0,
        factors: tuple[float, ...] = (),
        scale: float = 4.0,
        trained: int = 4096,
        longer: float | None = None,
    ) -> None:
        check_longer(self.name, scale=scale)
        if scale == 1:
            raise PositionError("position model 'longrope-dynamic' divides by scale - 1; give a scale above 1")
        super().__init__(dims, encoding, length, base, trained)
        self.scale = scale
        self.longer = length_of(self.name, longer, sharper(self.name, scale, trained))
        self.factors = factors_of(self.name, dims, factors, scale)

    def of_lengths(self, lengths: Tensor) -> Tensor:
        lengths = lengths.where(lengths > 0, self.trained)
        factors = 1 + (self.factors.to(lengths.device) - 1) * (lengths / self.trained - 1) / (self.scale - 1)
        if holds((factors <= 0).any()):
            raise PositionError(
                f"position model 'longrope-dynamic' has no positive factors for a text of {int(lengths.min())} units; "
                f"give a 'trained' nearer to the length of such texts, or use 'longrope'"
            )
        return inverse_frequencies(self.dims.head, lengths.device, self.base) / factors
