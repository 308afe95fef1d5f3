"""The configuration of graph to text."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from structpe.adapters.texts import TextsConfig
from structpe.data.prepare import PrepareConfig
from structpe.errors import ConfigError
from structpe.nn.search import SearchConfig
from structpe.nn.seq2seq import TransformerConfig
from structpe.plain.options import OPTION, Inert, bounded, check_shares, refuse_inert
from structpe.tasks import config as configurations
from structpe.tasks.training.config import OptimiserConfig, TrainingConfig

__all__ = [
    "DataConfig",
    "GraphToTextConfig",
    "InjectConfig",
    "PrepareConfig",
    "PretrainedConfig",
    "PretrainedOptimiser",
    "PretrainedTextConfig",
    "PretrainedTraining",
    "TextConfig",
    "TextTraining",
]

METRICS = ("loss", "bleu", "chrf")
"""Metrics that can select the best model: cross entropy per unit, BLEU, or chrF++ on the validation split."""


@dataclass(frozen=True)
class DataConfig:
    """The data.

    Args:
        train: file or folder of the training split, or a list of these; null if Python gives items,
            ``structpe.train(config, data=items)``.
        dev: the same for the validation split; without one, training takes all steps and the last model is kept.
        test: the same for the test split, which training does not use.
        reader: name of the reader; null chooses by the suffix. If the suffixes of the training files imply one reader,
            ``config.yaml`` of the run names it, and files that the model gets later are read by it.
        options: options of the reader.
        on_error: ``raise`` stops at the first bad item, ``skip`` skips and reports bad items.
    """

    train: str | list[str] | None = None
    dev: str | list[str] | None = None
    test: str | list[str] | None = None
    reader: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    on_error: Literal["raise", "skip"] = "raise"


@dataclass(frozen=True)
class TextTraining(TrainingConfig):
    """The training of a model of texts, as in :class:`TrainingConfig`.

    Args:
        smoothing: e of label smoothing.
    """

    smoothing: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self, "training.", "smoothing")


@dataclass(frozen=True)
class TextConfig:
    """Base class of the configurations of graph to text.

    Args:
        data: the splits and how they are read.
        prepare: how items become examples.
        model: the model.
        training: how the model is trained.
        search: how texts are searched for. A validation that scores texts searches greedily, with the same length.
        dev_texts: number of items of the validation split, always the same, whose texts are scored if
            ``training.validation.metric`` is ``bleu`` or ``chrf``; 0 for all. The loss is always that of all items.
        out: folder of the run.
        name: name of the run in tables.
        imports: modules or Python files of one's own; see :func:`~structpe.registry.import_code`.
    """

    data: DataConfig = field(default_factory=DataConfig)
    prepare: Any = field(default_factory=dict)  # a default of a class would be seen as that of its subclasses
    model: Any = field(default_factory=dict)
    training: TextTraining = field(default_factory=TextTraining)
    search: SearchConfig = field(default_factory=SearchConfig)
    dev_texts: int = 500
    out: str = "runs/graph-to-text"
    name: str = ""
    imports: list[str] = field(default_factory=list)

    inert: ClassVar[tuple[Inert, ...]] = (
        Inert(
            ("dev_texts",),
            "training.validation.metric is loss, for which no texts are written",
            lambda c: c.training.validation.metric == "loss",
        ),
    )

    def __post_init__(self) -> None:
        configurations.check_folder("out", self.out)
        if self.dev_texts < 0:
            raise ConfigError(f"dev_texts is {self.dev_texts}; give a number of items, or 0 for all")
        bounded(self, dev_texts=(0, OPTION))
        if (metric := self.training.validation.metric) not in METRICS:
            known = ", ".join(map(repr, METRICS))
            raise ConfigError(f"training.validation.metric takes one of {known}; given is {metric!r}")
        refuse_inert(self)
        if self.data.train is not None:
            self.check_validation(bool(self.data.dev))

    def check_validation(self, dev: bool) -> None:
        """Check that nothing is asked of a validation split that does not exist.

        Raises:
            ConfigError: a key of the validation has no effect.
        """
        if not dev:
            rule = Inert(("metric", "patience"), "data.dev is null, and the last model is kept")
            refuse_inert(self.training.validation, "training.validation.", [rule])

    @property
    def greedy(self) -> SearchConfig:
        """The search of a validation."""
        return SearchConfig(beam=1, longest=self.search.longest)

    @property
    def lowercase(self) -> bool:
        """Whether texts are compared in lower case."""
        return bool(self.prepare.lowercase)


@dataclass(frozen=True)
class GraphToTextConfig(TextConfig):
    """The configuration of a run of graph to text.

    Args:
        task: the kind of the run, always ``graph-to-text``.
        prepare: how items become examples.
        model: sizes and options of the encoder-decoder.
        position: position model of the structure, in the encoder: a name, a mapping with ``name`` and options, or a
            list of these, which is a sum; an empty list for none.
        decoder_position: position model of the text, in the decoder.
        start: folder of a finished run with the same model, from whose vocabulary, labels and best weights this run
            starts; null to start from new ones.
    """

    task: Literal["graph-to-text"] = field(default="graph-to-text", kw_only=True)
    prepare: PrepareConfig = field(default_factory=PrepareConfig)
    model: TransformerConfig = field(default_factory=TransformerConfig)
    position: Any = "graformer"
    decoder_position: Any = "sinusoidal"
    start: str | None = None


@dataclass(frozen=True)
class PretrainedOptimiser(OptimiserConfig):
    """An optimiser, as in :class:`OptimiserConfig`, with defaults for fine-tuning."""

    learning_rate: float = 1e-4
    warmup: int = 200


@dataclass(frozen=True)
class PretrainedTraining(TextTraining):
    """The training of a pretrained model, as in :class:`TextTraining`, with defaults for fine-tuning."""

    steps: int = 5_000
    batch_size: int = 16
    optimiser: PretrainedOptimiser = field(default_factory=PretrainedOptimiser)
    smoothing: float = 0.0


@dataclass(frozen=True)
class PretrainedConfig:
    """A pretrained model.

    Args:
        pretrained: folder or name of a checkpoint of Hugging Face that writes texts: an encoder-decoder, such as T5 or
            BART, or a decoder, such as Llama or GPT-2.
        options: keys of the checkpoint's configuration to change, such as ``dropout_rate``.
        freeze: whether only the position models are trained.
        position_rate: factor of ``training.optimiser.learning_rate`` for the position models, whose parameters are new.
    """

    pretrained: str
    options: dict[str, Any] = field(default_factory=dict)
    freeze: bool = False
    position_rate: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.position_rate < math.inf:
            raise ConfigError(f"model.position_rate is {self.position_rate}; give a number above 0")


@dataclass(frozen=True)
class InjectConfig:
    """A position model in the attention of a pretrained model; see :func:`structpe.inject`.

    Args:
        position: a name, a mapping with ``name`` and options, or a list of these, which is a sum.
        where: self-attention of the ``encoder`` or the ``decoder``, or ``cross``; null for the first of these that the
            model has.
        layers: numbers of the layers; null for all.
        start: ``zero``, the output of the model does not change at first; ``own``, the position model as it is;
            ``checkpoint``, with T5's own table, which it replaces (``t5``, ``t5-causal``, ``glm-local``,
            ``glm-global``).
        structures: ``given``, those of the items; or ``path``, each text is a path of its tokens, as the decoder of an
            encoder-decoder needs.
    """

    position: Any
    where: Literal["encoder", "decoder", "cross"] | None = None
    layers: list[int] | None = None
    start: Literal["zero", "own", "checkpoint"] = "zero"
    structures: Literal["given", "path"] = "given"


@dataclass(frozen=True)
class PretrainedTextConfig(TextConfig):
    """The configuration of a run of graph to text with a pretrained model.

    Args:
        task: the kind of the run, always ``pretrained-text``.
        prepare: how items become examples.
        model: the checkpoint.
        inject: position models for its attention; an empty list for none.
    """

    task: Literal["pretrained-text"] = field(default="pretrained-text", kw_only=True)
    prepare: TextsConfig = field(default_factory=TextsConfig)
    model: PretrainedConfig = field(kw_only=True)
    inject: list[InjectConfig] = field(default_factory=list)
    training: PretrainedTraining = field(default_factory=PretrainedTraining)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model.freeze and not self.inject:
            raise ConfigError("model.freeze is true and inject is empty, and nothing would be trained; change one")
        if not self.inject:
            refuse_inert(self.model, "model.", [Inert(("position_rate",), "inject is empty")])
