"""A table of learned positions for each language (Artetxe et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.feature import Feature
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import holds, numbers, of_whole

__all__ = ["Language"]


class Language(PositionModel, name="language"):
    """A table of learned positions for each language (Artetxe et al. 2020).

    x_t + P_gt: g the language of the text, P (L, t_max, d) learned, started from N(0, 0.02) as in BERT.

    (Artetxe et al. 2020, language-specific position embeddings; survey, section 4.5. No code by the authors is known.)
    They train the table of one language with the model, then another for the next language while the model stays as it
    is: which is a choice of the training, not of this model.

    Args:
        dims: sizes of the Transformer.
        encoding: t, integers 0, 1, ... per unit.
        language: g, integers 0, 1, ... per unit; by default a feature of the nodes, and 0 if a node has none.
        languages: L.
        length: t_max, number of positions.

    Raises:
        PositionError: a batch has a position of ``length`` or more, or a language of ``languages`` or more.
    """

    spec = Spec(
        "artetxe2020", "sequence", Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="L*t*d")
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        language: Encoding = Feature("language", missing=0),
        languages: int = 2,
        length: int = 512,
    ) -> None:
        encodings = [of_whole(self.name, encoding), of_whole(self.name, language)]
        super().__init__(dims, encodings, L=languages, t=length)
        self.tables = nn.Parameter(torch.randn(languages, length, dims.width) * 0.02)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places, languages = (numbers(self.name, e, prepared.queries(e)) for e in self.encodings)
        for given, known, what in ((languages, len(self.tables), "language"), (places, self.tables.shape[1], "length")):
            if holds(((given < 0) | (given >= known)).any()):
                raise PositionError(
                    f"position model 'language' has {len(self.tables)} languages of {self.tables.shape[1]} positions, "
                    f"this batch needs {int(given.min())}..{int(given.max())}; build it with a larger "
                    f"{'languages' if what == 'language' else 'length'!r}"
                )
        return x + self.tables[languages, places]
