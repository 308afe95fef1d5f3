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
from structpe.errors import StoreError, located, undamaged
from structpe.files import atomic_text
from structpe.nn.seq2seq import EncoderDecoder
from structpe.positions import Dims, PositionModel
from structpe.positions.build import build
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.graph_to_text.writer import Writer, WriterOfUnits
from structpe.tasks.positions import fitted
from structpe.tasks.runs._text import Splits, TextRun
from structpe.tasks.training.folder import check_devices
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
        check_devices(config.training)

    def learn(self, data: Splits) -> Learned:
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
        return WriterOfUnits(self.model(learned), learned[0])

    def digests(self, learned: Learned, writer: Writer) -> Mapping[str, str]:
        preparer, positions = learned
        assert isinstance(writer.model, EncoderDecoder)
        return {
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
        model = self.model(learned)
        self.best(model)
        return model, learned[0]

    def trained(self) -> Writer:
        return WriterOfUnits(*self.load())


def _built(position: Any, dims: Dims, key: str) -> PositionModel:
    with located(key):
        return build(position, dims)
