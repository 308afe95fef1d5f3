"""Sinusoids of places at the input, of each layer or of the first.

t is the number that the encoding gives a unit: its place in a text, or its depth in a tree. Sinusoids are computed in
float64, then rounded to the dtype of x. The *interleaved* form, which the survey has, has sin(t 10000^(-j/d)) in each
even channel j and the cosine of the same angle after it; the *concatenated* form of most authors' code has the sines
sin(t omega_i), omega_i = 10000^(-i/(d/2 - 1)), then the cosines: the two are not permutations of each other.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order, Reordered, Size
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Sources, Spec
from structpe.positions.batch import numbers, of_arity
from structpe.positions.places import UnitModel, in_queries_and_keys
from structpe.positions.sinusoids import CELLS, AddedSinusoids, Augmentation, augmented, interleaved, timing

__all__ = [
    "CAPE",
    "MVPE",
    "PNAT",
    "XLPE",
    "LengthAware",
    "LengthDifference",
    "LengthRatio",
    "NoisyLength",
    "Shortformer",
    "Sinusoidal",
    "SinusoidalConcatenated",
    "StepWaves",
    "Universal",
    "UniversalModel",
    "UniversalSinusoidal",
    "difference",
]

RECURRING = Cells("A", "APE", learnable=False, recurring=True, unbound=True, params="0")


class Sinusoidal(AddedSinusoids, name="sinusoidal"):
    """Sinusoidal absolute positions, interleaved (Vaswani et al. 2017; survey, eq. 21).

    x_t + P_t with P_tj = sin(t 10000^(-j/d)) for even j, cos(t 10000^(-(j-1)/d)) for odd j.

    (Vaswani et al. 2017; survey, eq. 21.) This is the survey's and OpenNMT's form. The authors' own code puts all sines
    before all cosines, with frequencies 10000^(-i/(d/2 - 1)): ``sinusoidal-concatenated``.
    """

    spec = Spec("vaswani2017", "sequence", CELLS, table1=CELLS)


class SinusoidalConcatenated(AddedSinusoids, name="sinusoidal-concatenated"):
    """Sinusoidal absolute positions as the authors wrote them: sines, then cosines (Vaswani et al. 2017).

    x_t + P_t,  P_t = cat[sin((t + start) omega_i), cos((t + start) omega_i)],  omega_i = 10000^(-i/(d/2 - 1)).

    i runs from 0 to d/2 - 1, rounded down; an odd d has one zero column at the end. (The authors' code, tensor2tensor,
    and fairseq's.) The survey's form is ``sinusoidal``. fairseq counts positions from 2 on: that is ``start=2``. Both
    scale unit embeddings by sqrt(d) before; that belongs to the embeddings.

    Args:
        start: what is added to every t.
    """

    spec = Spec("vaswani2017", "sequence", CELLS, note="Table 1 has the interleaved form")

    def __init__(self, dims: Dims, encoding: Encoding = Order(), start: int = 0) -> None:
        super().__init__(dims, encoding)
        self.start = start

    def waves(self, places: Tensor) -> Tensor:
        return timing(places + self.start, self.dims.width)


Start: TypeAlias = Literal["first", "random", "step"]
"""From where the places of a text of L units are counted in step l of s: ``first`` from 0; ``random`` from one of
0..L - 1 that is drawn at each step of training, and from 0 in evaluation; ``step`` from floor(L l / s)."""


class StepWaves(NamedTuple):
    """The places of the units of a batch.

    Attributes:
        places: (b, n).
        lengths: (b, n) L, at each unit; None if each step counts from 0.
        first: (b, n, d) the sinusoids counted from 0.
    """

    places: Tensor
    lengths: Tensor | None
    first: Tensor


class UniversalModel(PositionModel):
    """x_t + P_t and a vector of the step before every layer, P_t = cat[sin(t omega_i), cos(t omega_i)].

    Args:
        encoding: t, one number per unit.
        start: whether places are counted from 0 at each step, or in training from a place drawn at random, or from
            floor(L l / steps) in step l.
        length: L, one number per unit. It is needed only if places are not counted from 0; a decoder cannot use the
            model then.

    Raises:
        PositionError: an encoding is of pairs, or gives a vector per unit.
    """

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), start: Start = "first", length: Encoding = Size()
    ) -> None:
        encodings = [encoding] if start == "first" else [encoding, length]
        super().__init__(dims, [of_arity(self.name, each, 1) for each in encodings])
        self.start: Start = start

    def prepare(self, positions: Positions) -> StepWaves:
        """The places and their sinusoids."""
        places, *lengths = (numbers(self.name, each, positions.queries(each)) for each in self.encodings)
        return StepWaves(places, lengths[0] if lengths else None, timing(places, self.dims.width))

    def waves(self, prepared: StepWaves, step: int) -> Tensor:
        """(b, n, d) the sinusoids of a step."""
        places, lengths, first = prepared
        if lengths is None or (self.start == "random" and not self.training):
            return first
        if self.start == "random":  # a number for each row of a batch
            drawn = torch.rand(len(places), 1, dtype=torch.float64, device=places.device)
            return timing(places + (drawn * lengths).floor(), self.dims.width)
        return timing(places + lengths * step // self.dims.layers, self.dims.width)


class Universal(UniversalModel, name="universal"):
    """Sinusoids and a learned vector of the step before every layer: the Universal Transformer's code (Dehghani 2019).

    x_t + P_t + sqrt(d) S_l before every layer l: P (sinusoidal), S (l, d) learned, started from N(0, 1/d).

    P_t = cat[sin(t omega_i), cos(t omega_i)], omega_i = 10000^(-i/(d/2 - 1)), as in ``sinusoidal-concatenated``. A
    layer is one application of the shared layer of Dehghani et al. (2019), a step; here layers need not share weights.

    This is the default of the authors' code. The paper's and the survey's eq. 24 takes a sinusoid of the step:
    ``universal-sinusoidal``. Not included: the code's way of concatenating the signals instead of adding them. The code
    has every ``start``, too.
    """

    spec = Spec(
        "dehghani2019",
        "sequence",
        Cells("A", "APE", learnable=True, recurring=True, unbound=True, params="l*d"),
        table1=RECURRING,
        note="the code learns the vectors of the steps by default",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), start: Start = "first", length: Encoding = Size()
    ) -> None:
        super().__init__(dims, encoding, start, length)
        self.steps = nn.Parameter(torch.randn(dims.layers, dims.width) * dims.width**-0.5)

    def layer(self, x: Tensor, prepared: StepWaves, site: Site) -> Tensor:
        step = self.steps[site.layer] * math.sqrt(self.dims.width)
        return x + self.waves(prepared, site.layer).to(x.dtype) + step


class UniversalSinusoidal(UniversalModel, name="universal-sinusoidal"):
    """Sinusoids of the place and of the step before every layer: the Universal Transformer's paper (Dehghani 2019).

    x_t + P_t + P_l before every layer l = 0, 1, ...: the place and the number of the step, rows of one table.

    P_t = cat[sin(t omega_i), cos(t omega_i)], omega_i = 10000^(-i/(d/2 - 1)), as in ``sinusoidal-concatenated``.
    (Dehghani et al. 2019; survey, eq. 24; the option "sinusoid" of the authors' code.) The code counts steps from 0 and
    puts sines before cosines; eq. 24 interleaves them, with exponents -2i/d.
    """

    spec = Spec("dehghani2019", "sequence", RECURRING, table1=RECURRING)

    def layer(self, x: Tensor, prepared: StepWaves, site: Site) -> Tensor:
        step = timing(torch.tensor(site.layer, device=x.device), self.dims.width)
        return x + (self.waves(prepared, site.layer) + step).to(x.dtype)


class Shortformer(UnitModel, name="shortformer"):
    """Sinusoids in queries and keys of every layer, never in values: position-infused attention (Press et al. 2021).

    q_t = W_q (n_t + P_t), k_s = W_k (n_s + P_s), v_s = W_v n_s in every layer, n the normalised hidden vectors.

    P_t = cat[sin((t + 1) omega_i), cos((t + 1) omega_i)], omega_i = 10000^(-i/(d/2 - 1)). Hidden vectors then do not
    depend on places, and those of an earlier segment can be attended to: encoded together, both segments get new places
    1, 2, ... Nothing is added to the input. (Press et al. 2021 and their code; survey, eq. 7.)

    Raises:
        PositionError: the encoding has no values for the units of the earlier segment.
    """

    spec = Spec("press2021", "sequence", RECURRING, table1=RECURRING)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, m, d) the sinusoids of all keys, those of the queries being the last."""
        _, keys = self.places(positions)
        return timing(keys + 1, self.dims.width)

    def sources(self, sources: Sources, prepared: Tensor, site: Site) -> Sources:
        known, n, c = prepared.shape[1], sources.query.shape[1], sources.key.shape[1]
        if c > known:
            raise PositionError(
                f"{c} units are attended to and positions of {known} were given; with the cache of an earlier "
                f"segment, encode both segments together and take the last as queries: Positions.step({c - n}, {c})"
            )
        return in_queries_and_keys(self.name, sources, prepared)


class XLPE(PositionModel, name="xl-pe"):
    """Places in the source and in the order of the translation, fused: cross-lingual positions (Ding et al. 2020).

    x_t + tanh(U P_t + V P_t'): t the place in the sentence, t' that after reordering, P sinusoidal, U and V (d, d).

    The reordered place is that of the words of the source in the order of the target language, found by a grammar
    beforehand; it comes with the structure. (Ding et al. 2020; survey, section 4.5, which does not say how both
    encodings are integrated. The fusion is as we read the paper; no code is known.) Not included: its other way, in
    which some heads use the one and some the other.

    Args:
        encoding: t, one number per unit.
        reordered: t', one number per unit.

    Raises:
        PositionError: an encoding is of pairs, or gives a vector per unit.
    """

    spec = Spec(
        "ding2020", "sequence", Cells("A", "APE", learnable=True, recurring=False, unbound=True, params="2*d*d")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), reordered: Encoding = Reordered()) -> None:
        super().__init__(dims, [of_arity(self.name, each, 1) for each in (encoding, reordered)])
        self.original, self.reordered = (nn.Linear(dims.width, dims.width, bias=False) for _ in range(2))

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places = (numbers(self.name, each, prepared.queries(each)) for each in self.encodings)
        p, q = (interleaved(each, self.dims.width).to(x.dtype) for each in places)
        return x + torch.tanh(self.original(p) + self.reordered(q))


class CAPE(UnitModel, name="cape"):
    """Sinusoids of places that are shifted and scaled at random while training: CAPE (Likhomanenko et al. 2021).

    sqrt(d) x_t + P_t,  P_tj = sin(t' f_j + (j mod 2) pi/2),  f_j = s 10000^(-2 floor(j/2)/d).

    In training t' = (D t + delta + D epsilon_t) e^lambda, in evaluation t' = D t. D is the step between two units in
    seconds, for example; delta ~ U(-shift, shift) and lambda ~ U(-log scaling, log scaling) are drawn for each
    structure and batch, epsilon_t ~ U(-local, local) for each unit. (Likhomanenko et al. 2021, listing 1; survey,
    section 4.2. The code is a third party's and follows the listing.)

    As in the code, where the survey differs: the logarithm of lambda is uniform, the shifts come before the scale,
    which multiplies them too, and places are centred only on request: ``encoding="centred"``. By default nothing is
    drawn; for text that code proposes shift 5, local 0.5 and scaling 1.03, for speech it centres, with s = 30. With
    padding it counts one unit of it to the text, which moves the centre by half a step; this does not.

    Args:
        step: D.
        speed: s.
        shift: most by which all units are moved, 0 or more.
        local: most by which a unit is moved by itself, in steps; up to 0.5 keeps their order.
        scaling: most by which places are multiplied or divided, 1 or more.

    Raises:
        PositionError: a step or speed is not above 0, or an augmentation is invalid.
    """

    spec = Spec(
        "likhomanenko2021", "sequence", Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0")
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        step: float = 1.0,
        speed: float = 1.0,
        shift: float = 0.0,
        local: float = 0.0,
        scaling: float = 1.0,
    ) -> None:
        super().__init__(dims, encoding)
        if step <= 0 or speed <= 0:
            raise PositionError(f"position model 'cape': step {step}, speed {speed}; give numbers above 0")
        self.step, self.speed = step, speed
        self.augmentation = Augmentation(self.name, shift, local, scaling)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n) the places t' of this batch, float64."""
        queries, _ = self.places(positions)
        places = queries[..., None].double() * self.step
        if self.training:
            places = augmented(places, *self.augmentation.draw(places, self.step))
        return places[..., 0]

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return x * math.sqrt(self.dims.width) + interleaved(prepared * self.speed, self.dims.width).to(x.dtype)


class MVPE(AddedSinusoids, name="mvpe"):
    """Sinusoids of positions far apart from each other: maximum variances position embeddings (Li et al. 2019).

    x_t + P_t with P_tj = sin(k t 10000^(-j/d)) for even j, cos(k t 10000^(-(j-1)/d)) for odd j.

    The sinusoids of ``sinusoidal`` at every k-th position: the slow channels then vary as much as the fast ones. (Li et
    al. 2019; survey, eq. 25, which reports k > 1000 as suitable. No code is known.)

    Args:
        factor: k.
    """

    spec = Spec("li2019", "sequence", CELLS, table1=CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Order(), factor: float = 1001.0) -> None:
        super().__init__(dims, encoding)
        self.factor = factor

    def waves(self, places: Tensor) -> Tensor:
        return super().waves(places.double() * self.factor)


class LengthAware(PositionModel):
    """x_t + P_t, P the sinusoids of the place t and of the length l that the text will have.

    Args:
        encoding: t = 0, 1, ..., one number per unit.
        length: l, one number per unit: the length that the text will have. By default it is the number of units; a
            decoder needs it as input: give the nodes a feature and use ``length=Feature("length")``.

    Raises:
        PositionError: an encoding is of pairs, or gives a vector per unit.
    """

    def __init__(self, dims: Dims, encoding: Encoding = Order(), length: Encoding = Size()) -> None:
        super().__init__(dims, [of_arity(self.name, each, 1) for each in (encoding, length)])

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, d) the sinusoids of this batch."""
        return self.waves(*(numbers(self.name, each, positions.queries(each)) for each in self.encodings))

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return x + prepared.to(x.dtype)

    @abstractmethod
    def waves(self, places: Tensor, lengths: Tensor) -> Tensor:
        """(b, n, d) P at these places (b, n) of texts of these lengths (b, n), in float64."""


def difference(places: Tensor, lengths: Tensor, width: int) -> Tensor:
    """(b, n, width) row l + 1 - t of the table of sinusoids, whose row 1 is zero: fairseq's row for padding."""
    rows = lengths + 1 - places
    return timing(rows, width) * (rows != 1)[..., None]


class LengthRatio(LengthAware, name="length-ratio"):
    """Sinusoids whose frequencies fall with the length of the text to write (Takase and Okazaki 2019).

    x_t + P_t,  P_t = cat[sin((t + 2) omega_i), cos((t + 2) omega_i)],  omega_i = l^(-i/(d/2 - 1)).

    A length l below 1 counts as 1. (Takase and Okazaki 2019, LRPE, and their code, whose tables begin with row 2;
    survey, eq. 33, with t, interleaved, and exponents -2i/d.) The code takes the places of the first text of a batch
    for all texts, which is the same where no text is padded on the left. Ordinary sinusoids may be added, as there:
    ``["sinusoidal-concatenated", "length-ratio"]``, with ``start=2``.
    """

    spec = Spec("takase2019", "sequence", CELLS, table1=CELLS)

    def waves(self, places: Tensor, lengths: Tensor) -> Tensor:
        return timing(places + 2, self.dims.width, lengths.clamp(min=1))


class LengthDifference(LengthAware, name="length-difference"):
    """Sinusoids of how many units are still to come, given the length (Takase and Okazaki 2019).

    x_t + P_t,  P_t = cat[sin((l + 1 - t) omega_i), cos((l + 1 - t) omega_i)],  omega_i = 10000^(-i/(d/2 - 1)).

    (Takase and Okazaki 2019, LDPE, and their code; survey, eq. 32, with l - t, interleaved, and exponents -2i/d.) In
    the code the unit after the last, at t = l, has a row for padding: zeros; so it has here. Ordinary sinusoids may be
    added, as there: ``["sinusoidal-concatenated", "length-difference"]``, with ``start=2``.
    """

    spec = Spec("takase2019", "sequence", CELLS, table1=CELLS)

    def waves(self, places: Tensor, lengths: Tensor) -> Tensor:
        return difference(places, lengths, self.dims.width)


class NoisyLength(LengthAware, name="noisy-length"):
    """Sinusoids of how many units are still to come, the length being uncertain while training (Oka et al. 2020).

    x_t + P_t,  P_t = cat[sin(r omega_i), cos(r omega_i)],  r = l + e + 1 - t,  omega_i = 10000^(-i/(d/2 - 1)).

    As ``length-difference``, but in training an integer e, the same for all units of a structure, is drawn for each
    batch from -w..w, each as likely; in evaluation e = 0. (Oka et al. 2020; survey, section 4.4: "adding a randomly
    sampled integer to the length". No code is known: the sinusoids are those of the code that it extends, by Takase and
    Okazaki.) For inference Oka et al. predict l from the source by a separate network, which is not part of a position
    model: pass its prediction as ``length=Feature("length")``.

    Args:
        window: w; without noise it is ``length-difference``.
    """

    spec = Spec("oka2020", "sequence", CELLS, table1=CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Order(), length: Encoding = Size(), window: int = 4) -> None:
        super().__init__(dims, encoding, length)
        self.window = window

    def waves(self, places: Tensor, lengths: Tensor) -> Tensor:
        return difference(places, lengths + self.noise(lengths), self.dims.width)

    def noise(self, lengths: Tensor) -> Tensor:
        """(b, 1) the e of each structure."""
        if not self.training:
            return lengths.new_zeros(len(lengths), 1)
        return torch.randint(-self.window, self.window + 1, (len(lengths), 1), device=lengths.device)


class PNAT(AddedSinusoids, name="pnat"):
    """Sinusoids in a predicted order, for texts that are generated in one step (Bao et al. 2019).

    x_u + P_z(u): z the place in the text that is predicted for unit u, P (sinusoidal).

    z is a permutation: of the places of all units of a text that is generated in one step, one for each decoder input.
    (Bao et al. 2019; survey, section 4.4: position embeddings are reordered by the predicted permutation. No code is
    known.) The prediction comes with the structure, as a rank of each node; without one, z is the place in reading
    order. The predictors of length and permutation are networks over the decoder's inputs, with their own targets and
    loss; neither the survey nor this model defines them.

    Args:
        encoding: z, one number per unit.
    """

    spec = Spec("bao2019", "sequence", CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Reordered("predicted")) -> None:
        super().__init__(dims, encoding)
