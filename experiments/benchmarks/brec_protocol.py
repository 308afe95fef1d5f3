"""The protocol of BREC: can a model be trained to tell two graphs apart, beyond what the numbers of nodes do?

    D_k = f(copy k of the first) - f(copy k of the second),    T = mean(D)^T cov(D)^+ mean(D)

For each pair the model f, which maps graphs to vectors of d numbers, is trained anew to turn the vectors of 32 copies
of each graph away from one another; a copy has its nodes numbered at random. The pair is told apart if T is above a
threshold. The same is asked of copies of one graph alone: a model that tells these apart is not reliable there.

Wang and Zhang 2024, "An Empirical Study of Realized GNN Expressiveness", on what they call RPC, and their code.
Their paper has Hotelling's T^2 = q T for q copies, and 72.34 is its threshold at 5 %: (q - 1) d / (q - d) times the
95 % quantile of F(d, q - d), with d = 16. Their scripts compare T itself with 72.34, which asks for
32 times as much. That is the default here, as ``by_code``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from structpe.datasets.expressivity import Pair
from structpe.errors import ConfigError
from structpe.plain.options import BATCH, STEPS, bounded
from structpe.structure import Structure
from structpe.transforms.parts import renumbered

__all__ = ["BrecConfig", "Count", "Verdict", "count", "judge", "statistic"]

Prepare = Callable[[Sequence[Structure]], Any]


@dataclass(frozen=True)
class BrecConfig:
    """Options of the protocol; what is not given is as in the authors' code.

    Attributes:
        copies: of each graph, q.
        epochs: at most.
        batch: graphs at once, an even number, as the copies of both graphs take turns.
        learning_rate: of Adam; divided by ten when the loss falls no more for ten epochs.
        weight_decay: of Adam.
        margin: cosine of two vectors that is small enough not to be trained for.
        enough: mean loss of an epoch at which training ends.
        threshold: above which two graphs are told apart.
        by_code: whether it is T that is compared with the threshold, as in the authors' code; otherwise q T, as in
            their paper.
        epsilon: added to the diagonal of the covariance. A model whose vectors do not depend on the numbers of nodes
            by as little as rounding has a covariance of 0, whose pseudo-inverse would hide every difference.
        seed: of numbers of nodes, of parameters and of dropout.
    """

    copies: int = 32
    epochs: int = 20
    batch: int = 16
    learning_rate: float = 1e-4
    weight_decay: float = 1e-4
    margin: float = 0.0
    enough: float = 0.2
    threshold: float = 72.34
    by_code: bool = True
    epsilon: float = 0.0
    seed: int = 2023

    def __post_init__(self) -> None:
        """Refuse what no statistic can be made of."""
        if self.copies < 2 or self.batch < 2 or self.batch % 2 or self.epochs < 0:
            raise ConfigError(
                f"{self.copies} copies, batches of {self.batch}, {self.epochs} epochs; give 2 copies or more, an even "
                "batch, and 0 epochs or more"
            )
        bounded(self, copies=(2, BATCH), batch=(2, BATCH), epochs=(0, STEPS))


class Verdict(NamedTuple):
    """What the protocol says of a pair.

    Attributes:
        kind: of the pair.
        statistic: T, or q T, of the two graphs.
        control: the same of copies of one of them.
        apart: whether the two were told apart.
        reliable: whether the copies were not.
    """

    kind: str
    statistic: float
    control: float
    apart: bool
    reliable: bool


class Count(NamedTuple):
    """Numbers of pairs of a kind.

    Attributes:
        pairs: all.
        apart: told apart.
        unreliable: where copies of one graph were told apart too.
        sound: told apart, and reliable.
    """

    pairs: int
    apart: int
    unreliable: int
    sound: int


def judge(pair: Pair, make: Callable[[], nn.Module], prepare: Prepare, config: BrecConfig, number: int = 0) -> Verdict:
    """Train a model to tell a pair apart, and test whether it does.

    Args:
        pair: two graphs.
        make: makes a new model, which maps what ``prepare`` returns to (b, d) vectors, d below the number of copies.
        prepare: makes a batch of a list of b graphs; called once for each batch.
        config: options.
        number: of the pair; with the seed of ``config`` it decides all that is random, so that pairs may be judged
            in any order and by several processes.

    Raises:
        ConfigError: the model returns anything but (b, d) numbers.
    """
    generator = np.random.default_rng((config.seed, number))
    alone = pair.second if generator.integers(2) else pair.first
    batches, control = (
        _batches([renumbered(graph, generator) for _ in range(config.copies) for graph in graphs], prepare, config)
        for graphs in ((pair.first, pair.second), (alone, alone))
    )
    with torch.random.fork_rng():
        torch.manual_seed(int(generator.integers(2**62)))
        model = make()
        _train(model, batches, config)
        model.eval()
        found, alike = (_tested(model, each, config) for each in (batches, control))
    # Of two numbers that are the same one says nothing, however large both are.
    apart = found > config.threshold and not np.isclose(found, alike, rtol=1e-5, atol=1e-6)
    return Verdict(pair.kind, found, alike, bool(apart), alike < config.threshold)


def statistic(differences: Float[Tensor, "q d"], epsilon: float = 0.0) -> float:
    """mean(D)^T (cov(D) + epsilon)^+ mean(D), of q differences.

    Directions in which the differences vary by less than rounding are left out by the pseudo-inverse.
    """
    mean = differences.mean(dim=0)
    covariance = torch.cov(differences.T).reshape(len(mean), len(mean))
    covariance = covariance + epsilon * torch.eye(len(mean), dtype=mean.dtype, device=mean.device)
    return float(mean @ torch.linalg.pinv(covariance) @ mean)


def count(verdicts: Iterable[Verdict]) -> dict[str, Count]:
    """Numbers by kind, and under ``all`` of all kinds."""
    listed = list(verdicts)
    kinds = {kind: [v for v in listed if v.kind == kind] for kind in dict.fromkeys(v.kind for v in listed)}
    return {
        kind: Count(
            len(members),
            sum(v.apart for v in members),
            sum(not v.reliable for v in members),
            sum(v.apart and v.reliable for v in members),
        )
        for kind, members in {**kinds, "all": listed}.items()
    }


def _batches(graphs: Sequence[Structure], prepare: Prepare, config: BrecConfig) -> list[tuple[int, Any]]:
    parts: Iterator[Sequence[Structure]] = (
        graphs[start : start + config.batch] for start in range(0, len(graphs), config.batch)
    )
    return [(len(part), prepare(part)) for part in parts]


def _train(model: nn.Module, batches: Sequence[tuple[int, Any]], config: BrecConfig) -> None:
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained:
        return
    optimizer = torch.optim.Adam(trained, lr=config.learning_rate, weight_decay=config.weight_decay)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    apart = nn.CosineEmbeddingLoss(config.margin)
    model.train()
    for _ in range(config.epochs):
        total = 0.0
        for size, batch in batches:
            optimizer.zero_grad()
            vectors = _vectors(model, size, batch)
            loss = apart(vectors[::2], vectors[1::2], vectors.new_full((size // 2,), -1.0))
            loss.backward()
            optimizer.step()
            total += size / 2 * loss.item()
        if total / config.copies < config.enough:
            break
        schedule.step(total / config.copies)


@torch.no_grad()
def _tested(model: nn.Module, batches: Sequence[tuple[int, Any]], config: BrecConfig) -> float:
    vectors = torch.cat([_vectors(model, size, batch) for size, batch in batches])
    found = statistic(vectors[::2] - vectors[1::2], config.epsilon)
    return found if config.by_code else config.copies * found


def _vectors(model: nn.Module, size: int, batch: Any) -> Tensor:
    vectors: Tensor = model(batch)
    if vectors.ndim != 2 or len(vectors) != size:
        raise ConfigError(f"the model returned shape {tuple(vectors.shape)} for {size} graphs; ({size}, d) is needed")
    return vectors
