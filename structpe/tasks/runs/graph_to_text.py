"""A run of graph to text.

Files with what it learns before training:

=====================  ==================================================================================
tokenizer.json         the subword vocabulary
prepare.json           the form of the graph, numbers of edge labels
positions.json         the position models, with what their encodings learned of the training data
=====================  ==================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import torch

from structpe.data.digests import digest
from structpe.data.prepare import AFRESH, Preparer
from structpe.errors import ConfigError, StoreError, located, undamaged
from structpe.files import atomic_text
from structpe.nn.seq2seq import EncoderDecoder
from structpe.plain.inert import recorded
from structpe.positions import Dims, PositionModel
from structpe.positions.build import build
from structpe.tasks.config import differences
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.graph_to_text.writer import Writer, WriterOfUnits
from structpe.tasks.positions import fitted
from structpe.tasks.runs._text import Splits, TextRun
from structpe.tasks.runs.base import load_run
from structpe.tasks.training import weights
from structpe.tasks.training.folder import check_devices, device_of
from structpe.tasks.training.weights import WEIGHTS

__all__ = ["GraphToTextRun", "Splits"]

Learned: TypeAlias = tuple[Preparer, dict[str, Any]]
"""The preparer, and the descriptions of the position models by side."""


class GraphToTextRun(TextRun[GraphToTextConfig, Learned], name="graph-to-text"):
    """A structure is encoded, a text is written, by a model trained from the beginning."""

    configured = GraphToTextConfig
    learns = ("tokenizer.json", "prepare.json", "positions.json")

    def check(self) -> None:
        """Build a small model of the configuration, so that errors in it are found before data are read."""
        config = self.config
        encoder, decoder = (
            _built(position, config.model.dims(side), f"{side}_position")
            for side, position in (("encoder", config.encoder_position), ("decoder", config.decoder_position))
        )
        EncoderDecoder(config.model, 8, encoder, decoder)
        self._earlier()
        check_devices(config.training)

    def learn(self, data: Splits) -> Learned:
        if (earlier := self._earlier()) is not None:
            known, positions = earlier.restore()
            return Preparer(self.config.prepare, known.tokenizer, known.edge_types), positions
        config, preparer = self.config, Preparer.fit(data.train, self.config.prepare)
        return preparer, {
            "encoder": fitted(
                config.encoder_position,
                config.model.dims("encoder"),
                lambda: [preparer.structure(item) for item in data.train],
            ),
            "decoder": fitted(config.decoder_position, config.model.dims("decoder"), lambda: []),
        }

    def write(self, learned: Learned) -> None:
        preparer, positions = learned
        preparer.save(self.folder)
        atomic_text(self.folder / "positions.json", json.dumps(positions, indent=2, ensure_ascii=False))

    def restore(self) -> Learned:
        preparer, file = Preparer.load(self.folder), self.folder / "positions.json"
        with undamaged(file, AFRESH):
            positions = json.loads(file.read_text(encoding="utf-8"))
            return preparer, {side: positions[side] for side in ("encoder", "decoder")}

    def model(self, learned: Learned) -> EncoderDecoder:
        """The model as it is before training."""
        preparer, positions = learned
        torch.manual_seed(self.config.training.seed)
        encoder, decoder = (build(positions[side], self.config.model.dims(side)) for side in ("encoder", "decoder"))
        return EncoderDecoder(self.config.model, preparer.vocabulary_size, encoder, decoder, preparer.edge_types.size)

    def writer(self, learned: Learned) -> Writer:
        model = self.model(learned)
        if (earlier := self._earlier()) is not None:
            earlier.best(model)
            model.train()
        return WriterOfUnits(model, learned[0], device_of(self.config.training).type)

    def digests(self, learned: Learned, writer: Writer) -> Mapping[str, str]:
        preparer, positions = learned
        assert isinstance(writer.model, EncoderDecoder)
        began = (
            {} if self.config.start is None else {"weights to start from": weights.digest(writer.model.state_dict())}
        )
        return began | {
            "vocabulary": digest([preparer.tokenizer.to_str()]),
            "numbers of relation labels": digest([preparer.edge_types.relations]),
            "position models": digest([json.dumps(positions, sort_keys=True)]),
            "versions of encodings": digest(each.versions() for each in writer.model.encoder.position.encodings),
        }

    def load(self) -> tuple[EncoderDecoder, Preparer]:
        """The best model so far, ready for use, and its preparer."""
        if not (self.folder / WEIGHTS).exists():
            raise StoreError(f"{self.folder} holds no model.safetensors; training writes it at the first validation")
        learned = self.restore()
        with recorded():
            return self.filled(lambda: self.model(learned)), learned[0]

    def trained(self) -> Writer:
        return WriterOfUnits(*self.load())

    def _earlier(self) -> GraphToTextRun | None:
        """The run whose weights this one begins with.

        Raises:
            ConfigError: it is of another kind or model, is not finished, or is this run itself.
            StoreError: there is none, or a file is damaged.
        """
        if self.config.start is None:
            return None
        with located("start"):
            run = load_run(self.config.start)
            if not isinstance(run, GraphToTextRun):
                raise ConfigError(f"{run.folder} holds a run of {run.name}; give one of {self.name}")
            if run.folder.resolve() == self.folder.resolve():
                raise ConfigError(f"{run.folder} is the folder of this run itself; choose another one (out)")
            if not run.finished():
                raise ConfigError(f"the run in {run.folder} is not finished; finish it first")
            if other := [key for key in differences(run.config, self.config) if _shapes(key)]:
                raise ConfigError(
                    f"the run in {run.folder} has another model; they differ in {', '.join(other)}. Give these the "
                    f"values of that run, or null for start"
                )
            return run


def _shapes(key: str) -> bool:
    """Whether weights are of no use with another value of a key of the configuration."""
    return key.split(".")[0] in ("prepare", "model", "encoder_position", "decoder_position") and key not in (
        *("prepare.bpe_dropout", "prepare.longest_source", "prepare.longest_target", "model.kernel"),
        *("model.dropout", "model.attention_dropout", "model.input_dropout"),
    )


def _built(position: Any, dims: Dims, key: str) -> PositionModel:
    with located(key):
        return build(position, dims)
