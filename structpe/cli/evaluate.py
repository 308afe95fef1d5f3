"""``structpe evaluate``: scores of a trained model."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from structpe.cli._inputs import (
    SEARCH,
    InputFile,
    add_generation,
    check_device,
    check_file,
    generation_inputs,
)
from structpe.cli._scores import print_scores
from structpe.cli.base import Command, UsageError, refuse_idle
from structpe.system.progress import progress_bar

if TYPE_CHECKING:
    from structpe.tasks.runs import Run
    from structpe.tasks.runs.prediction import PredictionRun

__all__ = ["EvaluateCommand"]

SEARCHING = tuple(f"--{name.replace('_', '-')}" for name in SEARCH)


class EvaluateCommand(Command, name="evaluate"):
    """Score a trained model on a file, or on a split of its own data.

    Texts are compared with those in the file. Metrics are printed with their sacrebleu signatures; compare only scores
    with the same signature. Predictions are compared with the targets in the file, which are called as in training, by
    the metrics that training reports. A parser is scored on CoNLL-U by the words whose head (UAS), head and relation
    (LAS) and tags are right.
    """

    example = (
        "structpe evaluate runs/amr datasets/amr_sample/test.txt\n"
        "structpe evaluate runs/kg datasets/kg_sample/test.xml --option comment=good --on-error skip\n"
        "structpe evaluate runs/solubility --split valid\n"
        "structpe evaluate parser test.conllu --json"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        add_generation(parser, "file or folder with structures; by default a split of the run's data", nargs="?")
        parser.add_argument("--split", choices=("valid", "test"), help="which split, without FILE (default: test)")
        parser.add_argument("--json", action="store_true", help="print the metrics as one JSON object")

    def run(self, given: Namespace) -> None:
        from structpe.tasks.runs import load_run
        from structpe.tasks.runs.prediction import PredictionRun

        if given.file is not None:
            refuse_idle(given, "beside FILE, which is scored as a whole", "--split")
        if (given.run / "config.cfg").is_file():  # of spaCy
            _parser(given)
            return
        run = load_run(given.run)
        if given.file is None:
            check_file(given)
        if isinstance(run, PredictionRun):
            refuse_idle(given, "on a model that writes no texts", *SEARCHING)
            check_device(given)
            _print(given, *_predictions(given, run))
        else:
            _texts(given, run)


def _texts(given: Namespace, run: Run[Any, Any, Any, Any]) -> None:
    from structpe.tasks.graph_to_text.generator import OR_WRITE, read_split
    from structpe.tasks.runs import load

    items = None
    if given.file is None:
        items = read_split(run.kept.data, "dev" if given.split == "valid" else "test", OR_WRITE)
    items, search = generation_inputs(given, items, texts=True)
    with progress_bar("writing") as progress:
        scores, texts = load(given.run, given.device).evaluate(items, search, progress=progress)
    _print(given, len(texts), asdict(scores), str(scores))


def _predictions(given: Namespace, run: PredictionRun) -> tuple[int, dict[str, float]]:
    """The number of items, and their scores."""
    from structpe.tasks.runs import load
    from structpe.tasks.training.folder import device_named

    if given.file is None:
        return run.score(given.split or "test", device_named(given.device))
    items = InputFile.of(given.file, given, run).read().items
    scores, _ = load(given.run, given.device).evaluate(list(items))
    return len(items), scores


def _parser(given: Namespace) -> None:
    from structpe.formats.reading import choose
    from structpe.parsing import evaluate, load_parser

    others = ("--split", "--reader", "--option", "--on-error", "--device")
    refuse_idle(given, "on a parser, which is scored on CoNLL-U", *others, *SEARCHING)
    if given.file is None:
        raise UsageError(f"a parser keeps no data; give a file in CoNLL-U: structpe evaluate {given.run} FILE.conllu")
    choose(given.file, "conllu")  # before the parser is loaded, which is slow
    scores = evaluate([given.file], load_parser(given.run))
    if given.json:
        _print(given, scores.sentences, {name: each for name, each in asdict(scores).items() if name != "sentences"})
    else:
        print_scores(scores)


def _print(given: Namespace, count: int, scores: dict[str, Any], shown: str = "") -> None:
    if given.json:
        print(json.dumps({"items": count, **scores}, indent=2))
    else:
        print(shown or "\n".join(f"{name} {score:.4g}" for name, score in scores.items()))
