"""Rotary positions that learn how pairs turn, or read it from the units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions.batch import numbers, of_arity
from structpe.positions.block import CachedBlock, joined, of_layers, ranks, softmax, split
from structpe.positions.places import UnitModel
from structpe.positions.rotary import RotaryModel, Turns, check_even
from structpe.positions.sinusoids import inverse_frequencies
from structpe.precision import exactly, wide, widened
from structpe.terms import Terms

__all__ = ["GRAPEM", "CARoPE", "PoPE", "Polar", "RePo", "SelectiveRoPE"]


@dataclass(frozen=True, eq=False)
class Polar:
    """Angles of the channels of queries (b, 1, n, d_h), and of keys (b or 1, h, m, d_h)."""

    queries: Tensor
    keys: Tensor

    def turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Each channel as two: its length, above 0, times the cosine and the sine of its angle."""
        return _polar(q, self.queries), _polar(k, self.keys)


def _polar(x: Tensor, angles: Tensor) -> Tensor:
    length = functional.softplus(x)
    return torch.cat([length * angles.cos().to(x.dtype), length * angles.sin().to(x.dtype)], dim=-1)


class PoPE(UnitModel, name="pope"):
    """PoPE: a channel of queries and keys has a length by content and an angle by place (Gopalakrishnan et al. 2025).

    s_ts = sum_c softplus(q_c) softplus(k_c) cos((s - t) w_c + delta_c) / sqrt(d_h),  w_c = base^(-c/d_h), c < d_h.

    Polar coordinates: in ``rotary`` the angle of a pair of channels is one of content plus one of place, so that what a
    key contains changes where it is looked for. Here content is a length above 0 of each of the d_h channels, and place
    alone is the angle. delta (d_h), the angle at which a key of a channel is met best, is learned for each head of each
    layer, and clamped to -2 pi..0. (Gopalakrishnan et al. 2025, section 3, equations 3 to 6.) It starts from 0, which
    the authors recommend for longer texts; their other start is uniform between the bounds. Compared with the formula,
    and with PoPE-pytorch in float64, which shares one delta among layers.

    Queries and keys get twice as wide. It cannot be summed with other models that change them, such as ``rotary``,
    since softplus and rotations do not commute.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        base: the slowest channel turns about this many times slower than the fastest.
    """

    spec = Spec(
        "gopalakrishnan2025",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*d"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0) -> None:
        super().__init__(dims, encoding)
        self.base = base
        self.phases = nn.Parameter(torch.zeros(dims.layers, dims.heads, dims.head))

    def prepare(self, positions: Positions) -> Polar:
        """The angles of place, once for all layers."""
        queries, keys = self.places(positions)
        frequencies = inverse_frequencies(2 * self.dims.head, keys.device, self.base)
        return Polar(*((each[:, None, :, None].double() * frequencies) for each in (queries, keys)))

    def terms(self, prepared: Polar, site: Site) -> Terms:
        own = wide(self.phases[site.layer]).clamp(-2 * math.pi, 0)[:, None]
        # Queries and keys are twice as wide, and scores divided by the root of that.
        return Terms(maps=(Polar(prepared.queries, prepared.keys + own).turned,), scale=math.sqrt(2))


class GRAPEM(RotaryModel, name="grape-m"):
    """GRAPE-M: rotary positions whose pairs of channels learn how fast they turn (Zhang Y. et al. 2026).

    ``rotary-half`` with inverse frequencies exp(f_i): R_t turns the channels (i, i + d_h/2) of a head by t exp(f_i).

    The multiplicative form of GRAPE, a product of rotations in planes that commute. f (d_h/2) is learned for each
    layer, and for each head with ``per_head``; it starts where rotary positions are, exp(f_i) = base^(-2i/d_h). (Zhang
    Y. et al. 2026, section 3.1, "commuting MS-GRAPE", equation 3.1 with learned frequencies; their code, whose planes
    are those of the channels.) There both turn the other way, which exchanges the halves of a head. Compared with that
    code in float64. Not included: learned planes, and angles that are sums over units, for which see
    ``selective-rope``.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: t, one number per unit.
        base: the slowest pair turns about this many times slower than the fastest, at first.
        per_head: whether each head has frequencies of its own.

    Raises:
        PositionError: the width of a head is odd, or the encoding gives a vector per unit.
    """

    spec = Spec(
        "zhang2026",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*copies*dh//2"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, per_head: bool = False) -> None:
        super().__init__(dims, encoding, base)
        copies = dims.heads if per_head else 1
        self.sizes = {"copies": copies}
        logarithms = inverse_frequencies(dims.head, base=base).log().to(torch.get_default_dtype())
        self.frequencies = nn.Parameter(logarithms.repeat(dims.layers, copies, 1))

    def prepare(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """(b, 1, n, 1) the places of queries, and of keys."""
        (encoding,) = self.encodings
        keys = numbers(self.name, encoding, positions[encoding])
        queries, keys = (each[:, None, :, None].double() for each in (positions.queries(encoding), keys))
        return queries, keys

    def terms(self, prepared: tuple[Tensor, Tensor], site: Site) -> Terms:
        frequencies = wide(self.frequencies[site.layer]).exp()[:, None]
        return Terms(maps=(Turns(*(places * frequencies for places in prepared)).halves,))

    def inverse_frequencies(self) -> Tensor:
        """(l, h or 1, d_h/2) the w_i."""
        return self.frequencies.exp()


class SelectiveRoPE(CachedBlock, name="selective-rope"):
    """Selective RoPE: rotary positions whose angles add up over what the units contain (Movahedi et al. 2026).

    (q_t, k_s) -> (R_t q_t, R_s k_s): R_t turns the channels (i, i + d_h/2) by base^(-2i/d_h) phi_1i + ... + phi_ti.

    phi_u = conv(V U x_u) (d/2), with the numbers of each pair of each head: x, divided by its length in each head, is
    projected to r numbers and on to d/2 (U (r, d), V (d/2, r)), then convolved over the last k units, each number by
    itself. Where phi is 1 this is ``rotary-half``. (Movahedi et al. 2026, and their code with its defaults: low rank,
    no gate, bias or activation.) As there, projections have no biases. Compared with that code in float64. Not
    included: the gate of angles, a difference in place of the convolution, other frequencies.

    Angles add up in the order of the encoding; of units with the same number those stored later are later. Units that a
    mask hides count, those of padding do not. A decoder keeps phi as more channels of the keys.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit, by which units are ordered.
        base: of the factors of angles.
        rank: r.
        window: k.

    Raises:
        PositionError: the width of a head is odd.
    """

    spec = Spec(
        "movahedi2026",
        "sequence",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=True, params="(4*d*d + d*r + (r + k)*(d//2))*l"),
        note="a block counts its projections; relative but for the convolution, which reads units in front too",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 500_000.0,
        rank: int = 16,
        window: int = 4,
    ) -> None:
        check_even(self.name, dims)
        super().__init__(dims, [of_arity(self.name, encoding, 1)], r=rank, k=window)
        self.base, half = base, dims.width // 2
        self.down = of_layers(dims, rank, bias=False)
        self.up = nn.ModuleList(nn.Linear(rank, half, bias=False) for _ in range(dims.layers))
        self.filters = nn.Parameter(torch.empty(dims.layers, half, window).uniform_(-1, 1) * window**-0.5)

    def prepare(self, positions: Positions) -> Tensor:
        """(b or 1, m) the rank of each unit."""
        return ranks(self.name, self.encodings[0], positions)

    def project(self, x: Tensor, site: Site) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x, site)
        heads = split(wide(x), self.dims.heads)
        short = joined(heads * (heads.square().sum(-1, keepdim=True) + 1e-6).rsqrt()).to(x.dtype)
        phases = split(self.up[site.layer](self.down[site.layer](short)), self.dims.heads)
        return q, torch.cat([k, phases.to(k.dtype)], dim=-1), v

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Tensor, site: Site) -> Tensor:
        k, phases = torch.split(k, [self.dims.head, self.dims.head // 2], dim=-1)
        angles = self._angles(wide(phases), prepared, site.layer)
        q, k = Turns(angles[:, :, -q.shape[2] :], angles).halves(q, k)
        return softmax(self.scores(q, k), seen, site.dropout).to(v.dtype) @ v

    def _angles(self, phases: Tensor, rank: Tensor, layer: int) -> Tensor:
        """(b, h, m, d_h/2) sums of the convolved phases in order, times the factors."""
        at, order = (each[:, None, :, None].expand(phases.shape) for each in (rank, rank.argsort(dim=1)))
        channels = phases.gather(2, order).transpose(2, 3).flatten(1, 2)
        filters = self.filters[layer][:, None].to(channels.dtype)
        padded = functional.pad(channels, (filters.shape[-1] - 1, 0))
        convolved = functional.conv1d(padded, filters, groups=len(filters))
        total = torch.unflatten(convolved, 1, (phases.shape[1], -1)).transpose(2, 3).cumsum(dim=2)
        return total.gather(2, at) * inverse_frequencies(self.dims.head, total.device, self.base).to(total.dtype)


class RePo(CachedBlock, name="repo"):
    """RePo: rotary positions at places that are read from the units, not from their order (Li H. et al. 2025).

    ``rotary-half`` at the place z_t of a unit in each head:  z_t = w_h . (SiLU(G x_t) * C x_t).

    Context re-positioning: a unit is put where its content belongs, at any real number. G and C (r, d) and w (h, r) are
    learned for each layer; no structure is read. (Li H. et al. 2025, and their code, whose r is d/8. There the first
    layers keep ``rotary-half``, which a schedule of layers says.) As there, projections and maps have no biases.
    Compared with that code in float64. Without a mask units have no order: attention is the same for any other.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        base: of the inverse frequencies; 500,000 in the authors' models.
        rank: r; None for d/8, rounded up.

    Raises:
        PositionError: the width of a head is odd.
    """

    spec = Spec(
        "li2025repo",
        "sequence",
        Cells("R", "-", learnable=True, recurring=False, unbound=False, params="(4*d*d + 2*d*r + h*r)*l"),
        note="places are read from units, not from a structure; a block counts its projections",
    )

    def __init__(self, dims: Dims, base: float = 500_000.0, rank: int | None = None) -> None:
        check_even(self.name, dims)
        rank = -(-dims.width // 8) if rank is None else rank
        super().__init__(dims, [], r=rank)
        self.base = base
        self.gates, self.contents = (of_layers(dims, rank, bias=False) for _ in range(2))
        self.places = nn.ModuleList(nn.Linear(rank, dims.heads, bias=False) for _ in range(dims.layers))

    def project(self, x: Tensor, site: Site) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x, site)
        layer = site.layer
        read = functional.silu(self.gates[layer](x)) * self.contents[layer](x)
        places = self.places[layer](read).transpose(1, 2)[..., None]
        return q, torch.cat([k, places.to(k.dtype)], dim=-1), v

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Positions, site: Site) -> Tensor:
        frequencies = inverse_frequencies(self.dims.head, q.device, self.base)
        places = wide(k[..., -1:])
        angles = places * frequencies.to(places.dtype)
        q, k = Turns(angles[:, :, -q.shape[2] :], angles).halves(q, k[..., :-1])
        return softmax(self.scores(q, k), seen, site.dropout).to(v.dtype) @ v


class CARoPE(CachedBlock, name="carope"):
    """CARoPE: rotary positions whose units choose how far each head turns (Veisi et al. 2025).

    (q_t, k_s) -> (R_t q_t, R_s k_s): R_t turns the channels (i, i + d_h/2) by f_1^i + ... + f_t^i,  i = 0..d_h/2-1.

    f_u = 1 / (1 + softplus(w.x_u + b)), between 0 and 1, of each head and unit: with f_u = base^(-2/d_h) for all units
    this is ``rotary-half``. w (d) and b are learned for each head of each layer. (Veisi et al. 2025, section 2, without
    b. They start as rotary positions, which b makes possible: w starts from 0 and b where f is base^(-2/d_h). The
    authors published no code: compared with the formula.) Which channels are a pair is not said; projections have no
    biases: our choices.

    Angles add up in the order of the encoding; of units with the same number those stored later are later. Units that a
    mask hides count, those of padding do not. A decoder keeps f as two more channels of the keys.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit, by which units are ordered.
        base: of the inverse frequencies at first.

    Raises:
        PositionError: the width of a head is odd.
    """

    spec = Spec(
        "veisi2025",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="(4*d*d + d*h + h)*l"),
        note="a block counts its projections",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0) -> None:
        check_even(self.name, dims)
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.gates = of_layers(dims, dims.heads)
        for gate in self.gates.children():
            assert isinstance(gate, nn.Linear)
            nn.init.zeros_(gate.weight)
            nn.init.constant_(gate.bias, math.log(math.expm1(base ** (2 / dims.head) - 1)))

    def prepare(self, positions: Positions) -> Tensor:
        """(b or 1, m) the rank of each unit."""
        return ranks(self.name, self.encodings[0], positions)

    def project(self, x: Tensor, site: Site) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x, site)
        turns = 1 / (1 + functional.softplus(exactly(widened(self.gates[site.layer]))(wide(x))))
        turns = turns.transpose(1, 2)[..., None]
        # Errors would add up over a text: in half precision, what is lost of a number is a second one.
        near = turns.to(k.dtype)
        return q, torch.cat([k, near, (turns - near).to(k.dtype)], dim=-1), v

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Tensor, site: Site) -> Tensor:
        powers = torch.arange(self.dims.head // 2, device=k.device)
        angles = _summed(wide(k[..., -2:]).sum(-1, keepdim=True) ** powers, prepared)
        q, k = Turns(angles[:, :, -q.shape[2] :], angles).halves(q, k[..., :-2])
        return softmax(self.scores(q, k), seen, site.dropout).to(v.dtype) @ v


def _summed(numbers: Tensor, rank: Tensor) -> Tensor:
    """(b, h, m, p) for each unit the sum over those up to it, by rank (b or 1, m)."""
    at, order = (each[:, None, :, None].expand(numbers.shape) for each in (rank, rank.argsort(dim=1)))
    return numbers.gather(2, order).cumsum(dim=2).gather(2, at)
