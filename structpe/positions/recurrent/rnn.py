"""A recurrent network instead of positions (Neishi and Yoshinaga 2019, RNN-Transformer)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.encodings.size import Size
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import of_arity
from structpe.positions.recurrent._reading import Reader, Texts

__all__ = ["RNN"]


class RNN(PositionModel, name="rnn"):
    """A recurrent network instead of positions (Neishi and Yoshinaga 2019, RNN-Transformer).

    x_t -> h_t = GRU(x_t, h_(t-1)), h_(-1) = 0: a layer that reads the units in order before the first of attention.

    Its output replaces the input; nothing is added. One layer, one direction, d wide. (Neishi and Yoshinaga 2019,
    section 3; survey, section 4.1.2.) The authors have published no code. Units are read in the order that the encoding
    gives, those with the same number in the order in which they are stored; each text is read from its own first unit,
    independently of the rest of its row in the batch.

    Table 1 counts 6d^2 + 3d; PyTorch's GRU has a second set of 3d biases, which belongs to the state. The survey calls
    the model relative, because the network is the same at every place. In fact text in front changes the result,
    because the network has read it too.

    A decoder cannot use it: a decoding step has only the newest unit, not the state after the earlier ones.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per unit, by which units are read.
        length: the number of units of the text, at each unit.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec(
        "neishi2019",
        "sequence",
        Cells("A", "-", learnable=True, recurring=False, unbound=True, params="6*d*d + 6*d"),
        table1=Cells("R", "-", learnable=True, recurring=False, unbound=True, params="6*d*d + 3*d"),
        note="text in front of a text moves it, for the network has read it; PyTorch's has 3d more biases",
        not_compiled="its network runs over texts packed by their lengths, which are numbers of the batch",
        not_exported="its network runs over texts packed by their lengths, which are numbers of the batch",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), length: Encoding = Size()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1), of_arity(self.name, length, 1)])
        self.reader = Reader(dims.width)

    def prepare(self, positions: Positions) -> Texts:
        """Which units to read, one after the other."""
        return Texts.of(self.name, self.encodings, positions)

    def inputs(self, x: Tensor, prepared: Texts) -> Tensor:
        states: Tensor = self.reader(x, prepared)
        return states
