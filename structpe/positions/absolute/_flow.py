"""Vectors of positions as the path of a differential equation (Liu et al. 2020): dp/dt = h(t, p), integrated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from structpe.errors import PositionError, needing

__all__ = ["ConvolutionField", "Field", "LinearField", "Trail", "places_on", "solve"]

Field: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""h: (t (), p) -> dp/dt, of the shape of p (..., l, d)."""


class LinearField(nn.Module):
    """h(t, p) = W_2 [relu(W_1 [p; t] + c_1); t] + c_2 for each vector p (d): W (d, d + 1), c (d)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width + 1, width) for _ in range(2))
        for layer in self._each():
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, t: Tensor, p: Tensor) -> Tensor:
        first, second = self._each()
        return _affine(second, t, functional.relu(_affine(first, t, p)))

    def _each(self) -> list[nn.Linear]:
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]


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
        down, up = ((part.weight.to(p.dtype), _cast(part.bias, p)) for part in (self.down, self.up))
        hidden = functional.selu(functional.conv1d(_with_time(t, p), *down, stride=2, padding=2))
        return functional.conv_transpose1d(_with_time(t, hidden), *up, stride=2, padding=2, output_padding=1)


class Trail:
    """The path as far as it is known, kept while no gradients are needed: decoding uses it at every step."""

    def __init__(self) -> None:
        self._known: tuple[list[Tensor], Tensor] | None = None  # replaced as a whole: other threads may read it

    def follow(self, field: nn.Module, start: Tensor, count: int) -> Tensor:
        """(count, *start) as :func:`solve` gives it; what is known already is not computed again."""
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
    """(count, *start) p(0), p(step), ... by torchdiffeq's Runge-Kutta of order 4 (3/8 rule), ``parts`` steps for each.

    float32 at least. Gradients are those of the computed path itself; the states between two outputs are computed again
    in the backward pass, so that memory grows with ``count`` only. (The authors solve an adjoint equation instead,
    whose gradients differ by the error of the method.)

    Args:
        field: h.
        start: p(0).
        count: number of outputs.
        step: time between outputs.
        parts: steps of the method between two outputs.
        first: the number of the step of ``start``.
    """
    state = start.to(torch.promote_types(start.dtype, torch.float32))
    states = [state]
    for number in range(1, count):
        t = (first + number - 1) * step
        state = checkpoint(_advance, field, state, t, step / parts, parts, use_reentrant=False)
        states.append(state)
    return torch.stack(states)


def places_on(model: str, places: Tensor) -> int:
    """How many places 0, 1, ... there must be for these.

    Raises:
        PositionError: they are no integers, or some are negative.
    """
    if places.is_floating_point() or int(places.min()) < 0:
        raise PositionError(
            f"position model {model!r} follows a path through the places 0, 1, ...; its encoding gives "
            f"{places.min().item()} of dtype {places.dtype}: choose one of integers from 0, such as 'order' or 'depth'"
        )
    return int(places.max()) + 1


def _advance(field: Field, p: Tensor, t: float, h: float, parts: int) -> Tensor:
    times = torch.linspace(t, t + parts * h, parts + 1, dtype=p.dtype, device=p.device)
    reached: Tensor = _odeint()(field, p, times[[0, -1]], method="rk4", options={"grid_constructor": lambda *_: times})
    return reached[-1]


def _odeint() -> Callable[..., Tensor]:
    with needing("torchdiffeq", "ode"):
        from torchdiffeq import odeint
    integrate: Callable[..., Tensor] = odeint
    return integrate


def _affine(layer: nn.Linear, t: Tensor, x: Tensor) -> Tensor:
    """W [x; t] + c, without concatenating t with each x."""
    weight, bias = layer.weight.to(x.dtype), layer.bias.to(x.dtype)
    return functional.linear(x, weight[:, :-1], bias + t * weight[:, -1])


def _with_time(t: Tensor, p: Tensor) -> Tensor:
    return torch.cat([p, t.to(p.dtype).expand(*p.shape[:-2], 1, p.shape[-1])], dim=-2)


def _cast(bias: Tensor | None, p: Tensor) -> Tensor | None:
    return None if bias is None else bias.to(p.dtype)
