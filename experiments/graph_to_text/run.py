"""Train and score the models of models.yaml on real corpora; what is finished is not done again.

    python experiments/graph_to_text/run.py little_prince --data CORPORA --seeds 1 2 3
    python experiments/graph_to_text/run.py webnlg --data CORPORA --seeds 1
    python experiments/graph_to_text/run.py webnlg --base published --data CORPORA --seeds 1 2 3
    python experiments/graph_to_text/run.py little_prince --base finetuning --data CORPORA --seeds 1 2 3
    python experiments/graph_to_text/run.py --table

CORPORA is a folder that holds ``amr/little_prince`` and ``webnlg/challenge2017``. ``--base`` names another file beside
``base.yaml``; with another than ``base`` results go to its own files. ``start`` in it is the name of a third: the same
model and seed are trained by that one first, and training begins with their weights. A run that was killed goes on
where it was. Each finished run leaves a line in ``results/CORPUS.jsonl``; what it wrote for the test graphs is
``test.tsv`` in the folder of the run. ``--table`` prints the tables; ``python experiments/pages.py`` puts them into
experiments/README.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import torch
import yaml
from scipy import stats

import structpe
from structpe.nn.search import SearchConfig
from structpe.system.files import atomic_text
from structpe.tasks.runs import load_config, train
from structpe.tasks.runs.text import GraphToTextRun

HERE = Path(__file__).parent
MODELS: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "models.yaml").read_text(encoding="utf-8"))
CORPORA = ("little_prince", "webnlg")
GRAFORMER = SearchConfig(beam=2, length_penalty=5.0, longest=115)
"""As the authors of the Graformer search (their src/models/beam_search.py), but without its penalty of coverage."""
SEARCH = {
    "little_prince": SearchConfig(beam=5, longest=80),
    "webnlg": SearchConfig(beam=5, longest=100),
    **dict.fromkeys(("webnlg-authors", "webnlg-published", "webnlg-small", "webnlg-gpu"), GRAFORMER),
}
"""How the test is searched, by corpus, or by corpus and recipe where that has its own."""
COLUMNS = ("model", "seeds", "BLEU (13a, cased)", "BLEU, simplified", "chrF++", "steps", "epochs", "best step")
COLUMNS += ("minutes", "CPU minutes", "parameters", "commit")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", choices=CORPORA)
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--base", default="base", help="which YAML file of the corpus's folder (default: base)")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--out", type=Path, default=Path("runs/graph_to_text"), help="folder of the trained models")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="further keys of the configuration")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--table", action="store_true", help="print the tables of what is finished")
    given = parser.parse_args()
    if given.table:
        print(tables())
    elif given.corpus is None or given.data is None:
        parser.error("name a corpus and --data, or ask for --table")
    else:
        for seed in given.seeds:
            for model in given.models:
                one(given.corpus, given.base, model, seed, given)


def one(corpus: str, base: str, model: str, seed: int, given: argparse.Namespace) -> None:
    """One training and its test scores, unless they are there already; before it that with which it starts."""
    name = named(corpus, base)
    if (start := recipe(corpus, base).get("start")) is not None:
        one(corpus, start, model, seed, given)
    if any((run["model"], run["seed"]) == (model, seed) for run in kept(name, given.results)):
        print(f"{name}, {model}, seed {seed}: there already")
        return
    folder = given.out / name / f"{model}-{seed}"
    changed = [*overrides(corpus, base, model, seed, given.data, given.out), *given.set]
    config = load_config(HERE / corpus / f"{base}.yaml", changed)
    with_what, start = machine(), time.monotonic()
    outcome = train(config)
    minutes = (time.monotonic() - start) / 60
    items = seen(structpe.read(str(config.data.test), config.data.reader), corpus, config.data.train)
    search = SEARCH.get(name, SEARCH[corpus])
    scores, texts = structpe.load(folder).evaluate(items, search)
    parameters = sum(p.numel() for p in GraphToTextRun.of(folder).load()[0].parameters())
    lines = [f"{t.id}\t{t.text}\t{' ||| '.join(t.references)}" for t in texts]
    (folder / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    content = {
        "corpus": name,
        "model": model,
        "seed": seed,
        "items": len(texts),
        "minutes": minutes,
        "parameters": parameters,
        "result": asdict(outcome),
        "scores": asdict(scores),
        "search": asdict(search),
        "set": given.set,
        "machine": with_what,
    }
    keep(name, content, given.results)


def kept(corpus: str, folder: Path = HERE / "results") -> list[dict[str, Any]]:
    """All results of a corpus."""
    file = folder / f"{corpus}.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def keep(corpus: str, run: dict[str, Any], folder: Path = HERE / "results") -> None:
    """Insert a result, in the order of models and seeds."""
    runs = sorted([*kept(corpus, folder), run], key=lambda each: (list(MODELS).index(each["model"]), each["seed"]))
    folder.mkdir(parents=True, exist_ok=True)
    atomic_text(folder / f"{corpus}.jsonl", "".join(json.dumps(each) + "\n" for each in runs))


def named(corpus: str, base: str) -> str:
    """What the results of a recipe are called."""
    return corpus if base == "base" else f"{corpus}-{base}"


def recipe(corpus: str, base: str) -> dict[str, Any]:
    """The keys of a recipe; none if there is no such file."""
    file = HERE / corpus / f"{base}.yaml"
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def overrides(corpus: str, base: str, model: str, seed: int, data: Path, out: Path) -> list[str]:
    """What differs from the file, as the command line would say it.

    Args:
        corpus, base: the folder and the name of the file.
        model: of models.yaml; ``CORPUS/models.yaml`` and ``CORPUS/models-BASE.yaml`` say what is special.
        seed: of the training.
        data: folder of the corpora.
        out: folder of all runs.
    """
    keys = recipe(corpus, base)
    models = MODELS | recipe(corpus, "models") | recipe(corpus, f"models-{base}")
    paths = {f"data.{split}": below(data, keys["data"][split]) for split in ("train", "dev", "test")}
    rest = {"training.seed": seed, "out": str(out / named(corpus, base) / f"{model}-{seed}"), "name": model}
    if "start" in keys:
        rest["start"] = str(out / named(corpus, keys["start"]) / f"{model}-{seed}")
    return [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in (paths | models[model] | rest).items()
    ]


def below(folder: Path, paths: str | list[str]) -> str | list[str]:
    """Paths in a folder."""
    return str(folder / paths) if isinstance(paths, str) else [str(folder / path) for path in paths]


def seen(items: Any, corpus: str, train_split: Any) -> list[Any]:
    """For WebNLG the entries whose category is in the training split; everything otherwise."""
    if corpus != "webnlg":
        return list(items)
    known = {item.metadata["category"] for item in structpe.read(str(train_split), "webnlg")}
    return [item for item in items if item.metadata["category"] in known]


@cache  # after a long training the repository may be at another commit
def machine() -> dict[str, str]:
    """What the numbers were made with."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=True
    )
    return {
        "date": time.strftime("%Y-%m-%d"), "commit": commit.stdout.strip(), "structpe": structpe.__version__,
        "torch": torch.__version__, "python": sys.version.split()[0], "threads": str(torch.get_num_threads()),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {platform.machine()}",
    }  # fmt: skip


def tables() -> str:
    """The tables of all corpora."""
    files = [file for corpus in CORPORA for file in sorted((HERE / "results").glob(f"{corpus}*.jsonl"))]
    return "\n".join(table(file.stem) for file in files)


def table(corpus: str) -> str:
    """Markdown of all finished runs of a corpus: mean, and deviation where there are several seeds."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for model in MODELS:
        if done := [run for run in kept(corpus) if run["model"] == model]:
            lines.append(f"| {' | '.join(row(model, done))} |")
    return "\n".join([f"### {corpus}", "", *lines, ""])


def row(model: str, done: list[dict[str, Any]]) -> list[str]:
    """One line of the table."""

    def cell(values: list[float], digits: int) -> str:
        mean = f"{statistics.mean(values):.{digits}f}"
        return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.{digits}f}"

    def known(part: str, name: str, digits: int) -> str:
        values = [d[part][name] for d in done if d[part].get(name)]
        return cell(values, digits) if len(values) == len(done) else "-"

    cpu = [d["result"]["cpu_seconds"] / 60 for d in done if d["result"].get("cpu_seconds")]
    return [
        model,
        str(len(done)) if len(done) > 1 else "1 (not ranked)",
        cell([d["scores"]["bleu"] for d in done], 2) if cased(done) else "-",
        known("scores", "simplified_bleu", 2),
        cell([d["scores"]["chrf"] for d in done], 2),
        f"{statistics.mean(d['result']['steps'] for d in done):.0f}",
        known("result", "epochs", 1),
        f"{statistics.mean(d['result']['best_step'] for d in done):.0f}",
        f"{statistics.mean(d['minutes'] for d in done):.1f}",
        f"{statistics.mean(cpu):.1f}" if len(cpu) == len(done) else "-",
        f"{done[0]['parameters']:,}",
        ", ".join(sorted({d["machine"]["commit"] for d in done})),
    ]


WEBNLG, PRINCE = ("webnlg-gpu", "simplified_bleu"), ("little_prince-finetuning-small", "bleu")
PAIRS = (
    (*WEBNLG, "graformer", "linearised"),
    (*WEBNLG, "zhu-cnn", "linearised"),
    (*WEBNLG, "zhu-cnn", "graformer"),
    (*PRINCE, "zhu-cnn", "linearised"),
)
"""Results, their score, and two models that differ in what they know of the graph."""
WHAT = {"graformer": "distances in the Levi graph", "zhu-cnn": "label paths", "linearised": "the linearised graph"}


def rows_of_gain(folder: Path = HERE / "results") -> str:
    """Rows for docs/what-we-learned.md: by how much a model is better than another, and the p of a paired t test."""
    rows = []
    for corpus, score, *models in PAIRS:
        scores: dict[str, dict[int, float]] = {model: {} for model in models}
        for run in kept(corpus, folder):
            if run["model"] in scores:
                scores[run["model"]][run["seed"]] = run["scores"][score]
        first, second = (scores[model] for model in models)
        apart = [first[seed] - second[seed] for seed in sorted({*first} & {*second})]
        cells = [f"{statistics.mean(apart):+.2f}", f"{statistics.stdev(apart):.2f}", "BLEU", str(len(apart))]
        cells.append(f"{stats.ttest_1samp(apart, 0).pvalue:.1g}")
        what, instead = (WHAT[model] for model in models)
        rows.append(f"| {what} in place of {instead}, text | {corpus} | {' | '.join(cells)} |")
    return "\n".join(rows)


def cased(done: list[dict[str, Any]]) -> bool:
    """Whether texts were scored as they are; those of a model that writes lower case only are not."""
    return all("case:mixed" in d["scores"]["bleu_signature"] for d in done)


if __name__ == "__main__":
    main()
