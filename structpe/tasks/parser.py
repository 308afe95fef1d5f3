"""The training of a parser as a task: its configuration, and what it says while it trains.

spaCy trains it, and the folder is a pipeline of spaCy; see :func:`structpe.parsing.train`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from structpe import parsing
from structpe.errors import ConfigError
from structpe.plain.options import STEPS, bounded
from structpe.system.printing import printable
from structpe.system.progress import progress_bar
from structpe.tasks import config as configurations

__all__ = ["SCORES", "ParserConfig", "ParserData", "ParserTraining", "train_parser"]

SCORES = {"LAS": "dep_las", "UAS": "dep_uas", "UPOS": "pos_acc", "XPOS": "tag_acc"}
"""spaCy's names of the scores."""
FEW = 0.95
"""The fraction of scored words that should be found in their text, if the language is right."""
FOREIGN = "only {:.1f} % of words are words of spaCy's tokenizer too; is --language right?"


@dataclass(frozen=True)
class ParserData:
    """The trees.

    Args:
        train: CoNLL-U file or folder to learn from, or a list of these; null if Python gives sentences,
            ``structpe.train(config, data=sentences)``.
        dev: the same, to choose the best model on; without one, the last model is kept.
    """

    train: str | list[str] | None = None
    dev: str | list[str] | None = None


@dataclass(frozen=True)
class ParserTraining:
    """The training of a parser.

    Args:
        steps: updates of the parameters.
        seed: seed of the weights and the order of the sentences.
    """

    steps: int = parsing.Plan.steps
    seed: int = parsing.Plan.seed

    def __post_init__(self) -> None:
        bounded(self, "training.", steps=(1, STEPS))


@dataclass(frozen=True)
class ParserConfig:
    """The configuration of the training of a parser.

    Args:
        task: the kind of the training, always ``parser``.
        data: the trees.
        language: language code of spaCy's tokenizer; ``xx`` is for many languages.
        training: how long it is trained.
        out: folder of the new parser, which must not exist.
        imports: modules or Python files of one's own; see :func:`~structpe.registry.import_code`.
    """

    task: Literal["parser"] = field(default="parser", kw_only=True)
    data: ParserData = field(default_factory=ParserData)
    language: str = parsing.Plan.language
    training: ParserTraining = field(default_factory=ParserTraining)
    out: str = "runs/parser"
    imports: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        configurations.check_folder("out", self.out)


def train_parser(config: ParserConfig, given: Any = None, fresh: bool = False) -> Path:
    """Train a parser; return its folder, for :func:`structpe.parsing.load_parser`.

    Args:
        config: the configuration.
        given: sentences to learn from, or a mapping with ``train`` and ``dev``, in place of files.
        fresh: as of :func:`structpe.train`.

    Raises:
        ConfigError: ``fresh``, since a folder that is there is never removed; or there are no data, or two kinds.
        ParsingError: as of :func:`structpe.parsing.train`.
    """
    if fresh:
        raise ConfigError("the folder of a parser is not replaced; remove it, or choose another one (out)")
    training = config.training
    plan = parsing.Plan(
        _source(config.data, given, "train"),
        _source(config.data, given, "dev"),
        training.steps,
        training.seed,
        config.language,
    )
    try:
        with _progress() as report:
            parsing.train(plan, config.out, report)
    except (KeyboardInterrupt, SystemExit):
        print("structpe: the same command resumes the training", file=sys.stderr)
        raise
    print(printable(f"{config.out}: a parser for 'structpe parse --model {config.out}'"))
    return Path(config.out)


def _source(data: ParserData, given: Any, part: Literal["train", "dev"]) -> Any:
    """Files, or sentences from Python; nothing without a split to choose by."""
    files, found = getattr(data, part), configurations.split_given(given, part)
    if files is not None and found is not None:
        raise ConfigError(f"data.{part} names files, and sentences are given as data; leave one of the two out")
    if part == "train" and files is None and found is None:
        raise ConfigError(
            "data.train is null, and no sentences are given; name a file or folder in CoNLL-U (data.train), or give "
            "sentences in Python: structpe.train(config, data=sentences)"
        )
    chosen = found if files is None else files
    return (chosen,) if isinstance(chosen, (str, Path)) else () if chosen is None else chosen


@contextmanager
def _progress() -> Iterator[Callable[[parsing.Progress], None]]:
    """A line for each evaluation of the model, and a bar."""
    with progress_bar("training") as bar:

        def report(progress: parsing.Progress) -> None:
            bar(progress.step, progress.steps)
            if progress.scores is not None:
                scores = {name: progress.scores.get(key) for name, key in SCORES.items()}
                said = ", ".join(f"{name} {100 * score:.1f}" for name, score in scores.items() if score is not None)
                print(f"step {progress.step} of {progress.steps}: {said}", file=sys.stderr, flush=True)
                if progress.step == 0 and (found := progress.scores.get("token_f") or 0) < FEW:
                    print(f"structpe: {FOREIGN.format(100 * found)}", file=sys.stderr, flush=True)

        yield report
