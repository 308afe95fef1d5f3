"""A kernel computes the one equation; it knows terms and nothing else.

``dense`` is the meaning: slow, plain, every field. The others say which fields they support and are held to ``dense``
by the tests, in values and gradients.

Shapes: b batch, h heads, n queries, m keys, d width of a head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from structpe.attention._diagnosis import blamed
from structpe.attention._shapes import check_shapes
from structpe.errors import StructPEError, UnsupportedTerm
from structpe.registry import Registry
from structpe.terms import Terms

__all__ = ["KERNELS", "Kernel", "attend", "kernel"]

Compute: TypeAlias = Callable[[Tensor, Tensor, Tensor, Terms, float], Tensor]


@dataclass(frozen=True)
class Kernel:
    """A way of computing attention.

    Attributes:
        name: its name in the registry.
        supports: the fields of :class:`Terms` that it computes.
        cost: its place in the order in which ``auto`` tries kernels; the lowest that supports the terms wins.
        compute: (q, k, v, terms, dropout) -> o.
        needs: those of the fields without which it cannot compute at all.
    """

    name: str
    supports: frozenset[str]
    cost: int
    compute: Compute
    needs: frozenset[str] = frozenset()

    def can(self, used: frozenset[str]) -> bool:
        """Whether it computes terms that use these fields."""
        return self.needs <= used <= self.supports


KERNELS: Registry[Kernel] = Registry("structpe.attention", "attention kernel", StructPEError)
"""Every kernel by its name."""


def kernel(name: str, supports: str, cost: int, needs: str = "") -> Callable[[Compute], Compute]:
    """Enter a function into the registry as a kernel. Fields of ``Terms`` are named apart by blanks."""

    def enter(compute: Compute) -> Compute:
        KERNELS.add(name, Kernel(name, frozenset(supports.split()), cost, compute, frozenset(needs.split())))
        return compute

    return enter


def attend(
    q: Float[Tensor, "b h n d"],
    k: Float[Tensor, "b h m d"],
    v: Float[Tensor, "b h m d"],
    terms: Terms | None = None,
    kernel: str = "auto",
    dropout: float = 0.0,
) -> Float[Tensor, "b h n d"]:
    """Attention with the changes that ``terms`` asks for: the equation at the head of :mod:`structpe.terms`.

    Args:
        q, k, v: queries, keys and values.
        terms: what position models add; None for plain attention.
        kernel: name of a kernel, or ``auto``: the cheapest that supports the terms.
        dropout: probability with which an attention weight is dropped.

    Raises:
        UnsupportedTerm: the named kernel does not compute one of the terms.
        StructPEError: there is no kernel of that name, the shapes do not fit one another, an index names a row that is
            not there (on a GPU that is found out too late to be said), or a map does not give queries and keys.
    """
    if q.ndim != 4 or k.ndim != 4 or k.shape != v.shape or (*q.shape[:2], q.shape[3]) != (*k.shape[:2], k.shape[3]):
        shapes = ", ".join(str(tuple(x.shape)) for x in (q, k, v))
        raise StructPEError(f"attend takes q (b, h, n, d) and k, v (b, h, m, d); the shapes are {shapes}")
    terms = terms or Terms()
    b, h, n, d = q.shape
    check_shapes(terms, b, h, n, k.shape[2], d)
    _check_linear(terms)
    able = [each for each in KERNELS.values() if each.can(terms.used())]
    if kernel == "auto":
        # Not min(able, key=...), through which torch.compile does not see.
        return _computed(sorted(able, key=lambda each: each.cost)[0], q, k, v, terms, dropout)
    chosen = KERNELS[kernel]
    if chosen not in able:
        names = ", ".join(each.name for each in able)
        raise UnsupportedTerm(f"kernel {kernel!r} {_unable(chosen, terms.used())}; these can: {names} (or 'auto')")
    return _computed(chosen, q, k, v, terms, dropout)


def _computed(chosen: Kernel, q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float) -> Tensor:
    """What a kernel computes; where it fails and the terms are to blame, the error is about the terms."""
    try:
        return chosen.compute(q, k, v, terms, dropout)
    except (RuntimeError, LookupError, TypeError, ValueError) as error:
        if not torch.compiler.is_compiling() and (told := blamed(terms, q, k)):
            raise StructPEError(told) from error
        raise


def _unable(chosen: Kernel, used: frozenset[str]) -> str:
    if lacking := used - chosen.supports:
        return f"does not compute {', '.join(sorted(lacking))}"
    return f"computes attention with {', '.join(sorted(chosen.needs - used))} only, which these terms lack"


_WITH_FEATURE_MAP = frozenset({"maps", "mask", "pairs", "causal", "projection", "value", "feature_map"})


def _check_linear(terms: Terms) -> None:
    """What cannot be said at all, by any kernel."""
    if terms.feature_map is not None and (lost := terms.used() - _WITH_FEATURE_MAP):
        raise UnsupportedTerm(
            f"with a feature map attention has no score that {', '.join(sorted(lost))} could change; use position "
            f"models that act by {', '.join(sorted(_WITH_FEATURE_MAP - {'feature_map'}))}"
        )
    if terms.projection is not None:
        mixed = terms.projection.keys.shape[-1]
        if terms.causal or terms.pairs or any(mask.shape[-2] != 1 or mask.shape[-1] != mixed for mask in terms.mask):
            raise UnsupportedTerm(
                "keys that are mixtures of others cannot be masked for each query, so that neither causal attention "
                "nor listed pairs go with a projection; a mask must be (b or 1, h or 1, 1, m)"
            )
