"""The configuration of graph to text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from structpe.data.prepare import PrepareConfig
from structpe.errors import ConfigError
from structpe.nn.search import SearchConfig
from structpe.nn.seq2seq import TransformerConfig
from structpe.plain.bounds import OPTION, bounded
from structpe.tasks import config as configurations
from structpe.tasks.training.config import TrainingConfig

__all__ = ["DataConfig", "GraphToTextConfig", "load_config"]

METRICS = ("loss", "bleu", "chrf")
"""What may decide which model is best: the cross entropy per unit, BLEU, or chrF++, of the validation split."""


@dataclass(frozen=True)
class DataConfig:
    """Where the data are.

    Args:
        train: file or folder of the training split, or a list of these.
        dev: of the validation split; without one the last model is kept, and training takes all steps.
        test: of the test split, used by nothing in training.
        reader: name of the reader; null chooses by the suffix.
        options: options of the reader.
        on_error: ``raise`` stops at the first bad item, ``skip`` leaves bad items out and tells of them.
    """

    train: str | list[str]
    dev: str | list[str] | None = None
    test: str | list[str] | None = None
    reader: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    on_error: Literal["raise", "skip"] = "raise"


@dataclass(frozen=True)
class GraphToTextConfig:
    """Everything that a run of graph to text follows from.

    Args:
        data: the splits and how they are read.
        prepare: how items become examples.
        model: sizes and options of the encoder-decoder.
        encoder_position: position model of the encoder: a name, a mapping with ``name`` and options, or a list of
            these, whose sum is taken; an empty list for none.
        decoder_position: position model of the decoder.
        training: how the model is trained.
        search: how texts are searched for. When a validation scores texts, the search is greedy and as long as this.
        dev_texts: for how many items of the validation split, always the same, texts are written and scored when
            ``training.metric`` is ``bleu`` or ``chrf``; 0 for all. The loss is always that of all.
        out: folder of the run.
        name: what the run is called in tables.
    """

    data: DataConfig
    prepare: PrepareConfig = field(default_factory=PrepareConfig)
    model: TransformerConfig = field(default_factory=TransformerConfig)
    encoder_position: Any = "graformer"
    decoder_position: Any = "sinusoidal"
    training: TrainingConfig = field(default_factory=TrainingConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    dev_texts: int = 500
    out: str = "runs/graph-to-text"
    name: str = ""

    def __post_init__(self) -> None:
        configurations.check_folder("out", self.out)
        if self.dev_texts < 0:
            raise ConfigError(f"dev_texts is {self.dev_texts}; give a number of items, or 0 for all")
        bounded(self, dev_texts=OPTION)
        if self.training.metric not in METRICS:
            known = ", ".join(map(repr, METRICS))
            raise ConfigError(f"training.metric takes one of {known}; given is {self.training.metric!r}")

    @property
    def greedy(self) -> SearchConfig:
        """How a validation searches."""
        return replace(self.search, beam=1)


def load_config(path: str | Path | None, overrides: Sequence[str] = ()) -> GraphToTextConfig:
    """The configuration of a YAML file, with overrides such as ``training.steps=100``.

    Paths in it are relative to the working directory.

    Raises:
        ConfigError: the file is missing or no YAML, a key is unknown or missing, a value is of another type.
    """
    return configurations.load(GraphToTextConfig, path, overrides)
