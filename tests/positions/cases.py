"""What the tests of position models share: structures that suit each of them, and a small Transformer around."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structpe.attention import KERNELS, attend
from structpe.encodings import Encoding
from structpe.nn.layer import KVCache
from structpe.positions import MODELS, Block, Dims, PositionModel, Positions, Site, Sources
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.terms import Terms

DIMS = Dims(8, 2, 3)
TWO_LAYERS = Dims(8, 2, 2)
"""For the laws that are tested with every model: two are enough for what differs between layers."""

NAMES = sorted(MODELS)
BLOCKS = [name for name in NAMES if issubclass(MODELS[name], Block)]
TERMS = [name for name in NAMES if name not in BLOCKS]
"""The models whose attention is the one equation."""
LEARNABLE = [name for name in NAMES if MODELS[name].spec.cells.learnable]
CAUSAL = [name for name in NAMES if MODELS[name](DIMS).causal]
"""Those that a decoder may use."""


def tree(parents: Sequence[int], units: Sequence[int], relations: str, order: Sequence[int] | None = None) -> Structure:
    """A rooted tree with an order, labels and units: node i+1 hangs below parents[i]; node i owns units[i] units."""
    n = len(parents) + 1
    owner = np.repeat(np.arange(n), units)
    return Structure(
        nodes=tuple(f"n{i}" for i in range(n)),
        edges=np.array([(p, i) for i, p in enumerate(parents, start=1)]).reshape(-1, 2),
        relations=tuple(relations),
        order=np.arange(n) if order is None else np.array(order),
        root=0,
        units=tuple(f"u{j}" for j in range(len(owner))),
        owner=owner,
        features={"segment": np.arange(n) % 2},
        name="tree",
    )


# No two nodes can be exchanged in these, and no node has more than two children: eigenvectors are then determined, and
# paths of binary branches exist.
TREES = [
    tree([0, 0, 1, 3, 3, 4], [1, 2, 1, 1, 3, 1, 1], "abcabc", order=[2, 0, 4, 6, 5, 1, 3]),
    tree([0, 1, 0, 3, 4], [2, 1, 1, 1, 1, 1], "bacca", order=[3, 1, 0, 5, 4, 2]),
    tree([0, 1], [1, 1, 1], "ab"),
]

# Eigenvalues of multiplicity 3 and 2.
SYMMETRIC = [tree([0, 0, 1, 1, 2, 2], [1] * 7, "abcabc"), tree([0, 1, 1, 2, 2, 3, 3], [1] * 8, "abcabca")]


def labelled_path(size: int) -> Structure:
    """A sequence as a structure, each edge with the same label."""
    return replace(path([f"w{i}" for i in range(size)]), relations=("a",) * (size - 1))


LEARNED = [*TREES, labelled_path(4)]
"""What encodings learn labels from."""

TWO_PARTS = replace(labelled_path(4), edges=np.array([[0, 1], [2, 3]]), relations=("a", "b"), root=None)
"""Some pairs have no path."""


def seed(number: int) -> None:
    """Seed what draws on the CPU. ``torch.manual_seed`` also notes a stack trace, which takes longer."""
    torch.default_generator.manual_seed(number)


def made(name: str, dims: Dims = DIMS, **options: Any) -> PositionModel:
    """A model whose encodings have seen the labels of the structures here, with random parameters, in float64."""
    seed(0)
    model = MODELS[name](dims, **options)
    given = {name: o.fit(LEARNED) if isinstance(o, Encoding) else o for name, o in model.options().items()}
    if any(given[name] is not o for name, o in model.options().items()):
        seed(0)
        model = type(model)(dims, **given)
    model.double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    return model


def used(model: PositionModel, structures: Sequence[Structure] = TREES) -> frozenset[str]:
    """The fields of the equation that a model fills in any layer."""
    prepared = model.prepare(encoded(model, structures))
    return frozenset().union(*(model.terms(prepared, Site(layer)).used() for layer in range(model.dims.layers)))


@cache
def used_by(name: str) -> frozenset[str]:
    """The fields that a model of the registry fills in."""
    return used(made(name))


def able(fields: frozenset[str]) -> list[str]:
    """The kernels that compute these fields on a CPU."""
    return [name for name, kernel in sorted(KERNELS.items()) if kernel.can(fields) and not kernel.absent("cpu")]


def accepts(name: str, option: str) -> bool:
    """Whether the constructor of a model has an option of that name."""
    return option in inspect.signature(MODELS[name].__init__).parameters


@dataclass(frozen=True)
class Around:
    """A Transformer without feed-forward parts, whose weights are random and fixed."""

    model: PositionModel
    kernel: str = "dense"

    def weights(self, layer: int) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(layer)
        d = self.model.dims.width
        for _ in range(3):
            yield torch.randn(d, d, generator=generator, dtype=torch.float64) / d**0.5

    def project(self, x: Tensor, prepared: Any, site: Site) -> list[Tensor]:
        made_of = self.model.sources(Sources(x, x, x), prepared, site)
        each = (made_of.query, made_of.key, made_of.value)
        return [self.heads(of @ w.to(x.dtype)) for of, w in zip(each, self.weights(site.layer), strict=True)]

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.model.dims.heads, -1)).transpose(1, 2)

    def __call__(self, positions: Positions, x: Tensor, *masks: Tensor) -> Tensor:
        """The hidden vectors (b, n, d) after all layers."""
        prepared = self.model.prepare(positions)
        x = self.model.inputs(x, prepared)
        for layer in range(self.model.dims.layers):
            site = Site(layer)
            x = self.model.layer(x, prepared, site)
            terms = self.model.terms(prepared, site) + Terms(mask=masks)
            if self.model.own_attention:
                attended, prepared = self.model.attend(x, prepared, site, terms)
            else:
                q, k, v = self.project(x, prepared, site)
                attended = attend(q, k, v, terms, self.kernel).transpose(1, 2).flatten(2)
            x = x + attended
        return x

    def steps(self, positions: Positions, x: Tensor) -> Tensor:
        """The same under a causal mask, one unit after the other, keys and values kept as projected."""
        layers = self.model.dims.layers
        keys: list[list[Tensor]] = [[] for _ in range(layers)]
        values: list[list[Tensor]] = [[] for _ in range(layers)]
        caches = [KVCache() for _ in range(layers)]
        rows = []
        for place in range(x.shape[1]):
            prepared = self.model.prepare(positions.step(place, place + 1))
            h = self.model.inputs(x[:, place : place + 1], prepared)
            for layer in range(layers):
                site = Site(layer)
                h = self.model.layer(h, prepared, site)
                if self.model.own_attention:
                    own, prepared = self.model.attend(h, prepared, replace(site, cache=caches[layer]), Terms())
                    h = h + own
                    continue
                q, k, v = self.project(h, prepared, site)
                keys[layer].append(k)
                values[layer].append(v)
                seen = torch.cat(keys[layer], dim=2), torch.cat(values[layer], dim=2)
                h = h + attend(q, *seen, self.model.terms(prepared, site), self.kernel).transpose(1, 2).flatten(2)
            rows.append(h)
        return torch.cat(rows, dim=1)


def encoded(model: PositionModel, structures: Sequence[Structure], dtype: torch.dtype = torch.float64) -> Positions:
    return encode(structures, model.encodings).to(torch.device("cpu"), dtype)


def present(structures: Sequence[Structure]) -> Tensor:
    """(b, 1, 1, m) which keys are real."""
    counts = torch.tensor([s.unit_count for s in structures])
    return (torch.arange(int(counts.max()))[None] < counts[:, None])[:, None, None]


def causal(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril()[None, None]


def of_two_layers(name: str, dims: Dims = TWO_LAYERS, **options: Any) -> PositionModel:
    return made(name, dims, **options)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tolerance(positions: Positions) -> float:
    """Integers are exact; spectral encodings are rounded to float32 by themselves."""
    return 1e-5 if any(isinstance(p, Tensor) and p.is_floating_point() for p in positions.values()) else 1e-9
