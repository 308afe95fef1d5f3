"""Learned vectors or scalars of absolute places, and of segments and languages.

Places, segments and languages are rows of tables: an encoding that gives anything but whole numbers from 0 is refused,
and so is a batch with a number beyond a table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from structpe.encodings.base import Encoding
from structpe.encodings.features import Feature
from structpe.encodings.order import Order
from structpe.errors import PositionError, needing
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import holds, indices, numbers, of_arity, of_whole
from structpe.positions.places import PlaceRows, PlacesModel, UnitModel, at_places, beyond
from structpe.positions.tables import BOUND, Sharing, Table
from structpe.terms import Factor, Lookup, Terms

__all__ = [
    "FLOATER",
    "ConvolutionField",
    "DufterAbsolute",
    "FLOATERConvolution",
    "FLOATERInput",
    "Field",
    "FloaterModel",
    "Language",
    "Learned",
    "LinearField",
    "NoPE",
    "Reformer",
    "SegmentBias",
    "SegmentInput",
    "SegmentModel",
    "Trail",
    "places_on",
    "solve",
]

AT_INPUT = partial(Cells, "A", "APE", True, False, False)
"""Absolute, learned, added to the input once, bound; takes the formula of parameters."""


class NoPE(PositionModel, name="nope"):
    """No position information (Haviv et al. 2022; Kazemnejad et al. 2023).

    x_t and s_ij as they are.

    In a decoder the causal mask is not symmetric, so several layers can learn to count: this is the only position
    information, and the mask is not part of this model. (Kazemnejad et al. 2023, section 5.) In an encoder units are a
    set. An empty sum of position models is the same; this one has a name.
    """

    spec = Spec(
        "kazemnejad2023",
        "sequence",
        Cells("R", "-", learnable=False, recurring=False, unbound=False, params="0"),
        note="without positions, nothing changes when the text is shifted: only this makes it relative",
    )

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims, [])


class Learned(PositionModel, name="learned"):
    """Learned absolute positions (Vaswani et al. 2017; Devlin et al. 2019).

    x_t + P_t, P a learned table of t_max vectors (survey, section 4.1.1). It starts from N(0, 0.02) as in BERT.

    A place beyond the table is an error, as in BERT; tensor2tensor adds nothing there. LayerNorm and dropout, which
    follow in BERT, belong to the embeddings.

    Args:
        encoding: integers 0, 1, ... per unit.
        max_length: t_max, number of positions.

    Raises:
        PositionError: a batch has a position of ``max_length`` or more.
    """

    spec = Spec("devlin2019", "sequence", AT_INPUT("t*d"), table1=AT_INPUT("t*d"))

    def __init__(self, dims: Dims, encoding: Encoding = Order(), max_length: int = 512) -> None:
        super().__init__(dims, [of_whole(self.name, encoding)], t=max_length)
        self.table = nn.Parameter(torch.randn(max_length, dims.width) * 0.02)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places = indices(self.name, self.encodings[0], prepared.queries(self.encodings[0]))
        if holds((places >= len(self.table)).any()):
            raise beyond(self.name, len(self.table), "positions", int(places.max()) + 1)
        return x + self.table[places]


class DufterAbsolute(PlacesModel, name="dufter-abs"):
    """A learned scalar for each pair of places (Dufter, Schmitt and Schuetze 2020).

    s_ij += P[t, s], P (n, n) learned: each pair of places has its own number, and no place has a vector.

    (Dufter et al. 2020, section 2, direct position interactions; survey, section 4.1.2.) As in the authors' code the
    number is added after the scale. That code has one head; here each head has its own P, unless shared.

    Args:
        max_length: n, number of places.
        sharing: which layers and heads have the same P.
    """

    spec = Spec(
        "dufter2020", "sequence", Cells("A", "MAM", learnable=True, recurring=True, unbound=False, params="n*n*copies")
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), max_length: int = 128, sharing: Sharing = "none"
    ) -> None:
        super().__init__(dims, encoding, max_length, n=max_length, copies=Table.copies(sharing, dims))
        self.table = Table(dims, max_length * max_length, sharing)
        nn.init.normal_(self.table.weight, std=max_length**-0.5)

    def terms(self, prepared: PlaceRows, site: Site) -> Terms:
        of_pairs = self.table.at(site.layer).view(self.max_length, self.max_length, -1)
        queries, keys = prepared.queries, prepared.keys
        if isinstance(queries, slice) or isinstance(keys, slice):
            return Terms(bias=(of_pairs[queries, keys].permute(2, 0, 1)[None],))
        return Terms(bias=(of_pairs[queries[:, :, None], keys[:, None]].movedim(3, 1),))


class Reformer(PositionModel, name="reformer"):
    """Axial positions: one table for the segment, one for the place within it (Kitaev et al. 2020).

    x_t + cat[S_(t // n), W_(t mod n)]: S (m, d_1) one row per segment, W (n, d - d_1) per place in a segment.

    m n positions for m d_1 + n (d - d_1) numbers. Both tables start from N(0, 1). (Kitaev et al. 2020, in their code
    only; survey, eq. 5 and figure 3.)

    As the code does it: the first d_1 channels are for the segment, the slow index, and the last ones for the place
    within it. The survey's eq. 5 exchanges d_1 and d_2; the two differ by a permutation of channels. The code trains on
    texts of exactly m n units and drops whole rows of either table at random; here shorter texts take the first rows,
    as in its evaluation, and nothing is dropped.

    Args:
        encoding: integers 0, 1, ... per unit.
        segments: m.
        length: n, units in a segment.
        slow: d_1; None for half of d, rounded down.

    Raises:
        PositionError: there is no channel for the segment or for the place within it, or a batch has a position of m n
            or more.
    """

    spec = Spec(
        "kitaev2020",
        "sequence",
        AT_INPUT("m*d1 + n*(d - d1)"),
        table1=AT_INPUT("(d - d1)*t/t1 + d1*t1"),
        note="the same number under other names: the survey's d1 and t1 are those of the place within a segment",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), segments: int = 16, length: int = 32, slow: int | None = None
    ) -> None:
        d1 = dims.width // 2 if slow is None else slow
        if not 0 < d1 < dims.width:
            raise PositionError(
                f"position model 'reformer' is given {segments} segments of {length} units and {d1} of {dims.width} "
                f"channels for the segment; give 1 or more of each, and leave some channels for the place within it"
            )
        super().__init__(dims, [of_whole(self.name, encoding)], m=segments, n=length, d1=d1)
        self.segment = nn.Parameter(torch.randn(segments, d1))
        self.within = nn.Parameter(torch.randn(length, dims.width - d1))

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places = indices(self.name, self.encodings[0], prepared.queries(self.encodings[0]))
        segments, length = len(self.segment), len(self.within)
        if holds((places >= segments * length).any()):
            raise PositionError(
                f"position model 'reformer' has {segments} x {length} positions, this batch needs "
                f"{int(places.max()) + 1}; build it with more 'segments' or a larger 'length'"
            )
        return x + torch.cat([self.segment[places // length], self.within[places % length]], dim=-1)


class Language(PositionModel, name="language"):
    """A table of learned positions for each language (Artetxe et al. 2020).

    x_t + P_gt: g the language of the text, P (L, t_max, d) learned, started from N(0, 0.02) as in BERT.

    (Artetxe et al. 2020, language-specific position embeddings; survey, section 4.5. No code by the authors is known.)
    They train the table of one language with the model, then another for the next language while the model stays as it
    is: a choice of the training, not of this model.

    Args:
        encoding: t, integers 0, 1, ... per unit.
        language: g, integers 0, 1, ... per unit; by default a feature of the nodes, and 0 if a node has none.
        languages: L.
        max_length: t_max, number of positions.

    Raises:
        PositionError: a batch has a position of ``max_length`` or more, or a language of ``languages`` or more.
    """

    spec = Spec("artetxe2020", "sequence", AT_INPUT("L*t*d"))

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        language: Encoding = Feature("language", missing=0),
        languages: int = 2,
        max_length: int = 512,
    ) -> None:
        encodings = [of_whole(self.name, encoding), of_whole(self.name, language)]
        super().__init__(dims, encodings, L=languages, t=max_length)
        self.tables = nn.Parameter(torch.randn(languages, max_length, dims.width) * 0.02)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places, languages = (numbers(self.name, e, prepared.queries(e)) for e in self.encodings)
        sizes = self.tables.shape
        for given, known, option in ((languages, sizes[0], "languages"), (places, sizes[1], "max_length")):
            if holds(((given < 0) | (given >= known)).any()):
                raise PositionError(
                    f"position model 'language' has {sizes[0]} languages of {sizes[1]} positions, this batch needs "
                    f"{int(given.min())}..{int(given.max())}; build it with a larger {option!r}"
                )
        return x + self.tables[languages, places]


class SegmentModel(PositionModel):
    """A model of the segment of each unit. Padding counts as segment 0.

    Args:
        encoding: integers 0, 1, ... per unit; by default the feature "segment" of the nodes, 0 if a node has none.
        segments: c.

    Raises:
        PositionError: a batch has a segment of ``segments`` or more, or segments are not integers.
    """

    def __init__(self, dims: Dims, encoding: Encoding = Feature("segment", missing=0), segments: int = 2) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)], c=segments)

    def segments(self, of_units: Tensor) -> Tensor:
        """(b, n) the segment of each unit, checked."""
        values, count = numbers(self.name, self.encodings[0], of_units), self.sizes["c"]
        if values.is_floating_point():
            raise PositionError(
                f"position model {self.name!r} needs an integer per unit, the number of its segment; "
                f"{self.encodings[0]!r} gives {values.dtype} numbers; give the structures features of integers"
            )
        if torch.compiler.is_compiling():  # no number may be looked at while a graph is traced
            return values
        least, most = int(values.min()), int(values.max())
        if least < 0 or most >= count:
            raise PositionError(
                f"position model {self.name!r} has segments 0..{count - 1}, this batch has {least}..{most}; "
                f"number them from 0, and build it with 'segments' {most + 1} or more"
            )
        return values


class SegmentInput(SegmentModel, name="segment-input"):
    """Segments as learned vectors added to the units (Devlin et al. 2019).

    x_i + E[S(i)]: E is a learned table (c, d), S(i) the segment of unit i, c the number of segments.

    (Devlin et al. 2019, section 3, "input representation".) It starts from N(0, 0.02), as in BERT. Chen et al. 2021
    compare it with attention among segments, ``segment-bias``. Padding counts as segment 0.
    """

    spec = Spec(
        "devlin2019", "sequence", Cells("R", "APE", learnable=True, recurring=False, unbound=False, params="c*d")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Feature("segment", missing=0), segments: int = 2) -> None:
        super().__init__(dims, encoding, segments)
        self.table = nn.Parameter(torch.randn(segments, dims.width) * 0.02)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        return x + self.table[self.segments(prepared.queries(self.encodings[0]))]


class SegmentBias(SegmentModel, name="segment-bias"):
    """Attention among segments, as a scalar per pair of them (Chen et al. 2021).

    s_ij += E_S[S(i), S(j)], outside the scale: a learned table (c, c) per head and layer, c segments.

    S(i) is the segment of unit i. (Chen et al. 2021, section 3.1, eq. 2; their first version, eqs. 9 and 10, calls it
    relative; no code by the authors is known.) It is one summand of their models, in addition to the one for
    positions::

        build(["diet-abs", "segment-bias"], dims)

    As the table has rank c at most it is a :class:`Factor` of E_S[S(i)] and the unit vector of S(j), and needs no
    matrix of pairs. Padding counts as segment 0.

    Args:
        sharing: ``none`` as in the paper.
    """

    spec = Spec("chen2021", "sequence", BOUND("c*c*copies"))

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Feature("segment", missing=0),
        segments: int = 2,
        sharing: Sharing = "none",
    ) -> None:
        super().__init__(dims, encoding, segments)
        self.sizes = {"c": segments, "copies": Table.copies(sharing, dims)}
        self.table = Table(dims, segments, sharing, width=segments)

    def prepare(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """The segments of the queries (b, n), and those of the keys as unit vectors (b, m, c)."""
        of_keys = self.segments(positions[self.encodings[0]])
        return positions.queries(self.encodings[0]), functional.one_hot(of_keys, self.sizes["c"])

    def terms(self, prepared: tuple[Tensor, Tensor], site: Site) -> Terms:
        of_queries, of_keys = prepared
        left = at_places(self.table.at(site.layer), of_queries, self.dims.heads)
        right = of_keys.to(left.dtype)[:, None].expand(-1, self.dims.heads, -1, -1)
        return Terms(factors=(Factor(left, right),))


Field: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""h: (t (), p) -> dp/dt, of the shape of p (..., l, d)."""
TIMES = "how far its path through the places is followed depends on the batch"
"""Why a compiler does not trace these models."""


class LinearField(nn.Module):
    """h(t, p) = W_2 [relu(W_1 [p; t] + c_1); t] + c_2 for each vector p (d): W (d, d + 1), c (d)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        layers = [nn.Linear(width + 1, width) for _ in range(2)]
        for layer in layers:
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.layers = nn.ModuleList(layers)

    def forward(self, t: Tensor, p: Tensor) -> Tensor:
        return _linear_field(t, p, [each.to(p.dtype) for layer in self.layers for each in layer.parameters()])


def _linear_field(t: Tensor, p: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """W_2 [relu(W_1 [p; t] + c_1); t] + c_2, without concatenating t with each vector."""
    into, into_bias, out, out_bias = weights
    hidden = functional.linear(p, into[:, :-1], into_bias + t * into[:, -1]).relu()
    return functional.linear(hidden, out[:, :-1], out_bias + t * out[:, -1])


class ConvolutionField(nn.Module):
    """h(t, p) = C_2 * [selu(C_1 * [p; t]); t]: the l layers are channels of a signal of length d, and t is one more.

    C_1 leads from l + 1 channels to 2l of half the length, C_2, transposed, from 2l + 1 back to l; both are 5 wide.

    Raises:
        PositionError: the width is odd.
    """

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        if width % 2:
            raise PositionError(f"a vector field of convolutions halves the width and doubles it again; {width} is odd")
        self.down = nn.Conv1d(layers + 1, 2 * layers, 5, stride=2, padding=2)
        self.up = nn.ConvTranspose1d(2 * layers + 1, layers, 5, stride=2, padding=2, output_padding=1)
        for part in (self.down, self.up):
            nn.init.xavier_uniform_(part.weight)
        for bias in (self.down.bias, self.up.bias):
            if bias is not None:
                nn.init.zeros_(bias)

    def forward(self, t: Tensor, p: Tensor) -> Tensor:
        # Weights follow the dtype of p, which is not theirs in half precision.
        down, up = ([each.to(p.dtype) for each in part.parameters()] for part in (self.down, self.up))
        hidden = functional.selu(functional.conv1d(_with_time(t, p), down[0], down[1], stride=2, padding=2))
        signal = _with_time(t, hidden)
        return functional.conv_transpose1d(signal, up[0], up[1], stride=2, padding=2, output_padding=1)


def _with_time(t: Tensor, p: Tensor) -> Tensor:
    return torch.cat([p, t.to(p.dtype).expand(*p.shape[:-2], 1, p.shape[-1])], dim=-2)


class Trail:
    """The path as far as it is known, kept while no gradients are needed: decoding uses it at every step."""

    def __init__(self) -> None:
        self._known: tuple[list[Tensor], Tensor] | None = None  # replaced as a whole: other threads may read it

    def follow(self, field: nn.Module, start: Tensor, count: int) -> Tensor:
        """``(count, *start)`` as :func:`solve` gives it; what is known already is not computed again."""
        if torch.is_grad_enabled():
            return solve(field, start, count)
        known, made_of = self._known, [start, *field.parameters()]
        if known is None or not _same(known[0], made_of):
            self._known = known = [each.detach().clone() for each in made_of], solve(field, start, count)
        elif (so_far := len(known[1])) < count:
            more = solve(field, known[1][-1], count - so_far + 1, first=so_far - 1)
            self._known = known = known[0], torch.cat([known[1], more[1:]])
        return known[1][:count]


def _same(made_of: list[Tensor], now: list[Tensor]) -> bool:
    return all(
        (a.dtype, a.device) == (b.dtype, b.device) and torch.equal(a, b) for a, b in zip(made_of, now, strict=True)
    )


def solve(field: Field, start: Tensor, count: int, step: float = 0.01, parts: int = 5, first: int = 0) -> Tensor:
    """``(count, *start)`` p(0), p(step), ... by torchdiffeq's Runge-Kutta of order 4, ``parts`` steps for each.

    It is the 3/8 rule, in float32 at least. Gradients are those of the computed path itself; the states between two
    outputs are computed again in the backward pass, except those of a :class:`LinearField`, which are kept. (The
    authors solve an adjoint equation instead, whose gradients differ by the error of the method.)

    Args:
        field: h.
        start: p(0).
        count: number of outputs.
        step: time between outputs.
        parts: steps of the method between two outputs.
        first: the number of the step of ``start``.
    """
    state = start.to(torch.promote_types(start.dtype, torch.float32))
    if isinstance(field, LinearField) and not torch._C._are_functorch_transforms_active():
        weights = [each.to(state.dtype) for layer in field.layers for each in layer.parameters()]
        path: Tensor = _LinearPath.apply((count, step, parts, first), state, *weights)  # type: ignore[no-untyped-call]
        return path
    return _solved(field, state, count, step, parts, first)


def _solved(field: Field, state: Tensor, count: int, step: float, parts: int, first: int) -> Tensor:
    """The path through a state by any field."""
    states = [state]
    for number in range(1, count):
        t = (first + number - 1) * step
        state = checkpoint(_advance, field, state, t, step / parts, parts, use_reentrant=False)
        states.append(state)
    return torch.stack(states)


def _advance(field: Field, p: Tensor, t: float, h: float, parts: int) -> Tensor:
    with needing("torchdiffeq", "ode"):
        from torchdiffeq import odeint
    times = torch.linspace(t, t + parts * h, parts + 1, dtype=p.dtype, device=p.device)
    reached: Tensor = odeint(field, p, times[[0, -1]], method="rk4", options={"grid_constructor": lambda *_: times})
    return reached[-1]


_STAGES = ((0.0, 0.0, 0.0), (1 / 3, 0.0, 0.0), (-1 / 3, 1.0, 0.0), (1.0, -1.0, 1.0))
"""How many steps of each slope before it are added to the state at which a slope is computed: the 3/8 rule."""
_MEAN = (1 / 8, 3 / 8, 3 / 8, 1 / 8)
"""How the four slopes are averaged."""


class _LinearPath(torch.autograd.Function):
    """As :func:`_solved` by a :class:`LinearField`, in a fifth of the operations and less.

    The states are few numbers, so time is that of starting operations, one after the other. What does not have to wait
    is computed for all times at once: the part of t before, and the gradients of the weights after. Each stage keeps
    its state, and the hidden vector, of s vectors of width d: 8 parts s d numbers per place.
    """

    @staticmethod
    def forward(ctx: Any, times: tuple[int, float, int, int], state: Tensor, *weights: Tensor) -> Tensor:
        count, _, parts, _ = times
        (of_hidden, of_slope), dt = _of_time(times, weights), times[1] / times[2]
        width, flat = state.shape[-1], state.reshape(-1, state.shape[-1])
        into, out = weights[0][:, :-1].T, weights[2][:, :-1].T
        states = flat.new_empty((count - 1) * parts, 4, *flat.shape)
        hidden, slopes = torch.empty_like(states), flat.new_empty(4, *flat.shape)
        steps = [flat.new_tensor(each[:stage]) * dt for stage, each in enumerate(_STAGES)]
        mean, before = flat.new_tensor(_MEAN) * dt, [slopes[:stage].flatten(1).T for stage in range(5)]
        path = flat.new_empty(count, *flat.shape)
        path[0] = flat
        for number in range(len(states)):
            for stage in range(4):
                at, h = states[number, stage], hidden[number, stage]
                if stage:
                    torch.addmv(flat.view(-1), before[stage], steps[stage], out=at.view(-1))
                else:
                    at.copy_(flat)
                torch.addmm(of_hidden[number, stage], at, into, out=h).relu_()
                torch.addmm(of_slope[number, stage], h, out, out=slopes[stage])
            flat = torch.addmv(flat.reshape(-1), before[4], mean).view(-1, width)
            if (number + 1) % parts == 0:
                path[(number + 1) // parts] = flat
        ctx.times = times
        ctx.save_for_backward(state, *weights, states, hidden)
        return path.view(count, *state.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        state, *weights, states, hidden = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient of a gradient is asked for
            given = [each.view_as(each) for each in (state, *weights)]
            path = _solved(lambda t, p: _linear_field(t, p, given[1:]), given[0], *ctx.times)
            return None, *torch.autograd.grad(path, given, grad, create_graph=True, allow_unused=True)
        count, step, parts, _ = ctx.times
        dt, grad = step / parts, grad.reshape(count, -1, state.shape[-1])
        into, out = weights[0][:, :-1], weights[2][:, :-1]
        seen, of_slopes, of_hidden = (hidden > 0).to(grad.dtype), torch.empty_like(states), torch.empty_like(hidden)
        steps = [grad.new_tensor(each[:stage]) * dt for stage, each in enumerate(_STAGES)]
        mean, adjoint = grad.new_tensor(_MEAN)[:, None] * dt, grad[-1].clone()
        for number in reversed(range(len(states))):
            mine, of_stage = of_slopes[number], of_hidden[number]
            torch.mul(mean, adjoint.view(1, -1), out=mine.flatten(1))
            for stage in reversed(range(4)):
                torch.mm(mine[stage], out, out=of_stage[stage]).mul_(seen[number, stage])
                of_state = of_stage[stage] @ into
                adjoint += of_state
                if stage:
                    mine[:stage].flatten(1).addr_(steps[stage], of_state.view(-1))
            if number % parts == 0:
                adjoint += grad[number // parts]
        return None, adjoint.view_as(state), *_of_weights(ctx.times, (states, hidden), (of_hidden, of_slopes))


def _all_times(times: tuple[int, float, int, int], like: Tensor) -> Tensor:
    """(T, 4) the times of the stages of all steps."""
    count, step, parts, first = times
    begin = torch.arange((count - 1) * parts, dtype=torch.float64, device=like.device) / parts + first
    return (step * (begin[:, None] + begin.new_tensor([0, 1 / 3, 2 / 3, 1]) / parts)).to(like.dtype)


def _of_time(times: tuple[int, float, int, int], weights: Sequence[Tensor]) -> list[Tensor]:
    """(T, 4, 1, d) what t adds in each layer, with its bias."""
    at = _all_times(times, weights[0])[..., None, None]
    return [bias + at * weight[:, -1] for weight, bias in (weights[:2], weights[2:])]


def _of_weights(times: tuple[int, float, int, int], inputs: Sequence[Tensor], grads: Sequence[Tensor]) -> list[Tensor]:
    """The gradients of weights and biases, from what entered each layer at all times, and the gradients of its sums."""
    made = []
    for given, of_sums in zip(inputs, grads, strict=True):
        at = _all_times(times, given)[..., None, None].expand(*given.shape[:-1], 1).reshape(-1, 1)
        flat = of_sums.flatten(0, -2)
        made += [flat.T @ torch.cat([given.flatten(0, -2), at], dim=1), flat.sum(0)]
    return made


def places_on(model: str, places: Tensor) -> int:
    """How many places 0, 1, ... there must be for these.

    Raises:
        PositionError: they are not integers, or some are negative.
    """
    if places.is_floating_point() or int(places.min()) < 0:
        raise PositionError(
            f"position model {model!r} follows a path through the places 0, 1, ...; its encoding gives "
            f"{places.min().item()} of dtype {places.dtype}: choose one of integers from 0, such as 'order' or 'depth'"
        )
    return int(places.max()) + 1


class FloaterModel(UnitModel):
    """q_t + p_q(t), k_t + p_k(t), v_t + p_v(t) in every layer, p the path of a differential equation.

    Args:
        encoding: integers 0, 1, ... per unit.

    Raises:
        PositionError: a batch has other numbers.
    """

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, encoding)
        self.start = nn.Parameter(nn.init.xavier_uniform_(torch.empty(3, dims.layers, dims.width)))
        self.field = self.new_field()
        self.trail = Trail()

    @abstractmethod
    def new_field(self) -> nn.Module:
        """H of the equation dp/dt = h(t, p), p (3, l, d)."""

    def prepare(self, positions: Positions) -> tuple[Tensor, Tensor, Tensor]:
        """The path (T, 3, l, d), and the places of queries (b, n) and keys (b, m)."""
        queries, keys = self.places(positions)
        return self.trail.follow(self.field, self.start, places_on(self.name, keys)), queries, keys

    def terms(self, prepared: tuple[Tensor, Tensor, Tensor], site: Site) -> Terms:
        path, of_queries, of_keys = prepared
        q, k, v = path[:, :, site.layer].unbind(1)
        a, b = (x.view(*x.shape[:-1], self.dims.heads, -1).transpose(1, 2) for x in (q[of_queries], k[of_keys]))

        def shift(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
            return q + a.to(q.dtype), k + b.to(k.dtype)

        values = v.to(self.start.dtype)[of_keys]
        return Terms(maps=(shift,), value=(_per_key(self.dims, values, of_queries.shape[1]),))


def _per_key(dims: Dims, values: Tensor, n: int) -> Lookup:
    """x_ij = values_j: each key has its own row, and the index is a view of no size."""
    b, m, _ = values.shape
    table = values.reshape(b * m, dims.heads, dims.head)
    rows = torch.arange(b * m, device=values.device).view(b, m)
    return Lookup(table, rows, torch.arange(m, device=values.device).expand(b, n, m))


class FLOATER(FloaterModel, name="floater"):
    """Biases of the projections from a differential equation: the code of FLOATER (Liu et al. 2020).

    q_t + p_q(t), k_t + p_k(t), v_t + p_v(t) in every layer, each p(t) (d) by dp/dt = h(t, p) from a learned p(0).

    h(t, p) = W_2 [relu(W_1 [p; t] + c_1); t] + c_2 with W (d, d + 1) and c (d) is one for q, k, v and all layers; p(0)
    (3, l, d), Glorot-uniform at first, is separate for each. Place t has time 0.01 t, reached by five steps of the
    Runge-Kutta method of order 4 (3/8 rule). (Liu et al. 2020, as in their code; survey, eq. 6.)

    The survey's form, added to the input of layers, is ``floater-input``. By default the authors' code also adds
    sinusoids to the input: ``["sinusoidal-concatenated", "floater"]``; it gives biases to the attention to an encoder
    too, uses at most 255 places and, to save time, the same path for 400 updates. Here the path is computed for every
    batch, up to its farthest place, and kept only if no gradients are needed: training evaluates h 20 times per place.
    Queries and keys are shifted by one of ``Terms.maps``, which does not commute with rotations: do not add it to
    ``rotary``.
    """

    spec = Spec(
        "liu2020",
        "sequence",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=True, params="3*l*d + 2*d*(d + 2)"),
        table1=Cells("A", "APE", learnable=True, recurring=True, unbound=True, params="0"),
        note="Table 1, '0 or more', has the paper's form at the input; the code adds to queries, keys and values",
        not_compiled=TIMES,
        not_exported=TIMES,
    )

    def new_field(self) -> nn.Module:
        return LinearField(self.dims.width)


class FLOATERInput(UnitModel, name="floater-input"):
    """Positions at the input of each layer from a differential equation (Liu et al. 2020; survey, eq. 6).

    x_t + p_l(t) before layer l, p_l(t) (d) from dp/dt = h(t, p) and a learned p_l(0).

    h(t, p) = W_2 [relu(W_1 [p; t] + c_1); t] + c_2 with W (d, d + 1) and c (d) is one for all layers; p(0) (n, d),
    Glorot-uniform at first, differs from layer to layer. (Liu et al. 2020; survey, eq. 6, which reports both a vector
    at the first layer only, ``layers=1``, and one at each.) The authors' code adds to queries, keys and values instead:
    ``floater``. From there are the network, the time 0.01 between places and the method, Runge-Kutta of order 4 (3/8
    rule) in five steps for each place.

    Args:
        encoding: integers 0, 1, ... per unit.
        layers: n, how many layers, from the first, are given positions; None for all.

    Raises:
        PositionError: a batch has other numbers, or there are not as many layers.
    """

    spec = Spec(
        "liu2020",
        "sequence",
        Cells("A", "APE", learnable=True, recurring=True, unbound=True, params="n*d + 2*d*(d + 2)"),
        table1=Cells("A", "APE", learnable=True, recurring=True, unbound=True, params="0"),
        note="Table 1 has '0 or more' parameters, as any function may be taken for h",
        not_compiled=TIMES,
        not_exported=TIMES,
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), layers: int | None = None) -> None:
        super().__init__(dims, encoding)
        count = dims.layers if layers is None else layers
        if not 1 <= count <= dims.layers:
            raise PositionError(
                f"position model 'floater-input' adds positions at {count} of {dims.layers} layers; give a "
                f"number from 1 to {dims.layers}, or None for all"
            )
        self.sizes = {"n": count}
        self.start = nn.Parameter(nn.init.xavier_uniform_(torch.empty(count, dims.width)))
        self.field = LinearField(dims.width)
        self.trail = Trail()

    def prepare(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """The path (T, l, d), and the places of the queries (b, n)."""
        places, _ = self.places(positions)
        return self.trail.follow(self.field, self.start, places_on(self.name, places)), places

    def layer(self, x: Tensor, prepared: tuple[Tensor, Tensor], site: Site) -> Tensor:
        path, places = prepared
        return x + path[places, site.layer].to(x.dtype) if site.layer < len(self.start) else x


class FLOATERConvolution(FloaterModel, name="floater-convolution"):
    """Biases of the projections from a differential equation with convolutions: the other field of FLOATER (Liu 2020).

    ``floater`` with another vector field: the l vectors p of q, of k and of v are channels of a signal.

    q_t + p_q(t), k_t + p_k(t), v_t + p_v(t) in every layer, p (3, l, d) by dp/dt = h(t, p) from a learned p(0), and
    h(t, p) = C_2 * [selu(C_1 * [p; t]); t]: C_1 (2l, l + 1, 5) halves the length d of the signal, C_2 (2l + 1, l, 5)
    doubles it again; the time t is one more channel; both have biases. (Liu et al. 2020: in the authors' code, which
    does not use it by default.) All else is as in ``floater``. The width must be even.
    """

    spec = Spec(
        "liu2020",
        "sequence",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=True, params="3*l*d + 5*l*(4*l + 3) + 3*l"),
        note="not in Table 1, which has the paper's form at the input",
        not_compiled=TIMES,
        not_exported=TIMES,
    )

    def new_field(self) -> nn.Module:
        return ConvolutionField(self.dims.layers, self.dims.width)
