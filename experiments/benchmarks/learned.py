"""What two rows of a study differ by, for docs/what-we-learned.md: a paired test over the seeds that both have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from structpe.objectives import METRICS
from structpe.tasks.prediction.report import Difference, difference, read_scores

__all__ = ["QUESTIONS", "Question", "answered", "table"]

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Question:
    """What is asked of a study.

    Attributes:
        asked: in words.
        study: its name.
        first, second: rows, ``DATA/MODEL/POSITION``.
    """

    asked: str
    study: str
    first: str
    second: str


ZINC, CORA, MINES, TOLOKERS = "zinc-stand-in/", "cora/", "minesweeper/", "tolokers/"
TUNED, ONE_SUM, DRAWN = "minesweeper-tuned", TOLOKERS + "hybrid-sum/rwse", "cora-drawn/"
ZERO, PEPTIDES = "hybrid-zero/none", "peptides/"
QUESTIONS = (
    Question("random walks in a hybrid, molecules", "zinc", ZINC + "hybrid/rwse", ZINC + "hybrid/none"),
    Question("the same, 41,127 molecules, scaffold split", "molhiv", "molhiv/hybrid/rwse", "molhiv/hybrid/none"),
    Question("the same, 1,128 molecules", "esol", "esol/hybrid/rwse", "esol/hybrid/none"),
    Question(
        "GRIT's attention and RRWP, not plain attention and RWSE", "zinc", ZINC + "hybrid/rrwp", ZINC + "hybrid/rwse"
    ),
    Question("attention beside GatedGCN, molecules", "zinc", ZINC + "hybrid-gated/rwse", ZINC + "gatedgcn/rwse"),
    Question("the same in one sum", "zinc", ZINC + "hybrid-sum/rwse", ZINC + "gatedgcn/rwse"),
    Question("one sum, not as in GPS", "zinc", ZINC + "hybrid-sum/rwse", ZINC + "hybrid-gated/rwse"),
    Question("attention beside GCN, peptides", "peptides-gpu", PEPTIDES + "hybrid/rwse", PEPTIDES + "gcn/rwse"),
    Question("batches shuffled, not sorted by size, molecules", "order", ZINC + "shuffled/rwse", ZINC + "by-size/rwse"),
    Question("the same, peptides", "order", PEPTIDES + "shuffled/rwse", PEPTIDES + "by-size/rwse"),
    Question(
        "linear attention beside GCN, layer norm",
        "cora-attention",
        CORA + "hybrid-one-head/none",
        CORA + "gcn-residual-norm/none",
    ),
    Question("the same without any norm", "cora-attention", CORA + "hybrid-no-norm/none", CORA + "gcn-residual/none"),
    Question(
        "no norm in place of layer norm, with attention",
        "cora-attention",
        CORA + "hybrid-no-norm/none",
        CORA + "hybrid-one-head/none",
    ),
    Question(
        "softmax, with dropout, in place of linear attention",
        "cora-attention",
        CORA + "hybrid-softmax/none",
        CORA + "hybrid-one-head/none",
    ),
    Question("one head in place of four", "cora-attention", CORA + "hybrid-one-head/none", CORA + "hybrid/none"),
    Question("attention and GCN in one sum, against GCN", "cora", CORA + "hybrid-sum/none", CORA + "gcn/none"),
    Question("the same, the drawn split", "cora", DRAWN + "hybrid-sum/none", DRAWN + "gcn/none"),
    Question("that sum with attention begun at zero, against GCN", "cora", CORA + ZERO, CORA + "gcn/none"),
    Question("the same, the drawn split", "cora", DRAWN + ZERO, DRAWN + "gcn/none"),
    Question("begun at zero, not at random", "cora", CORA + ZERO, CORA + "hybrid-sum/none"),
    Question("the same, the drawn split", "cora", DRAWN + ZERO, DRAWN + "hybrid-sum/none"),
    Question("linear attention beside SAGE", "minesweeper", MINES + "hybrid/none", MINES + "sage-4/none"),
    Question("the same with a feed-forward part", "minesweeper", MINES + "hybrid-ff/none", MINES + "sage-4-ff/none"),
    Question("random walks in the hybrid", "minesweeper", MINES + "hybrid/rwse", MINES + "hybrid/none"),
    Question(
        "an activation after SAGE, beside attention", "activation", MINES + "sage-relu/none", MINES + "sage-none/none"
    ),
    Question("the same after GCN", "activation", MINES + "gcn-relu/none", MINES + "gcn-none/none"),
    Question("a hybrid with random walks, against the tuned GCN", TUNED, MINES + "hybrid/rwse", MINES + "gcn/none"),
    Question("random walks in that hybrid", TUNED, MINES + "hybrid/rwse", MINES + "hybrid/none"),
    Question("a tuned SAGE, against the tuned GCN", TUNED, MINES + "sage/none", MINES + "gcn/none"),
    Question("a tuned GAT, against the tuned GCN", TUNED, MINES + "gat/none", MINES + "gcn/none"),
    Question("linear attention beside SAGE", "tolokers", TOLOKERS + "hybrid/none", TOLOKERS + "sage/none"),
    Question("random walks in the hybrid", "tolokers", TOLOKERS + "hybrid/rwse", TOLOKERS + "hybrid/none"),
    Question("GCN and attention in one sum, not as in GPS", "tolokers", ONE_SUM, TOLOKERS + "hybrid-gcn/rwse"),
    Question("attention in that sum", "tolokers", ONE_SUM, TOLOKERS + "gcn-linear/rwse"),
    Question("that sum with random walks, against GCN", "tolokers", ONE_SUM, TOLOKERS + "gcn/none"),
)


def answered(question: Question) -> Difference:
    """By its study's scores."""
    return difference(read_scores(RESULTS / question.study / "scores.csv"), question.first, question.second)


def table() -> str:
    """All questions with their answers."""
    lines = ["| what | study | better by | ± | metric | seeds | p |", "|---|---|--:|--:|---|--:|--:|"]
    for question in QUESTIONS:
        found = answered(question)
        cells = (
            f"{found.mean:+.3f}",
            f"{found.deviation:.3f}",
            METRICS[found.metric].name,
            f"{found.seeds}",
            f"{found.p:.1g}",
        )
        lines.append(f"| {question.asked} | {question.study} | {' | '.join(cells)} |")
    return "\n".join(lines)
