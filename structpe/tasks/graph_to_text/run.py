"""The folder of a run: all that is needed to go on training, or to use the model.

=====================  ==================================================================================
config.yaml            the configuration, every key
tokenizer.json         the subword vocabulary
prepare.json           the form of the graph, numbers of edge labels
positions.json         the position models, with what their encodings learned of the training data
SHA256SUMS             checksums of these four
model.safetensors      weights of the best model so far
checkpoints/step-N/    what training goes on from: ``tensors.safetensors`` and ``state.json``, no pickle
metrics.csv            step, metric, value
tensorboard/           the same for TensorBoard
result.json            how training ended; there is none before
=====================  ==================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from structpe.checksums import SUMS, seal
from structpe.data.prepare import AFRESH, Preparer
from structpe.errors import StoreError, StructPEError, undamaged
from structpe.files import atomic_write
from structpe.nn.seq2seq import EncoderDecoder
from structpe.positions import Dims, PositionModel
from structpe.positions.build import build
from structpe.readers import Item
from structpe.tasks.config import save
from structpe.tasks.graph_to_text.config import GraphToTextConfig, load_config
from structpe.tasks.positions import fitted
from structpe.tasks.training import folder as folders
from structpe.tasks.training.folder import check_devices, clear
from structpe.tasks.training.weights import WEIGHTS, load_weights

__all__ = ["begin", "check", "fit", "load", "model", "restore", "same"]

SEALED = ("config.yaml", "tokenizer.json", "prepare.json", "positions.json")
"""Files that are written when a run begins, and stay as they are."""
FILES = ("result.json", *SEALED, SUMS, WEIGHTS, "metrics.csv")
FREE = ("out", "name", "data.test", "training.workers")
"""Keys that may change when a run goes on, as nothing in training follows from them."""


def check(config: GraphToTextConfig) -> None:
    """Build a small model of the configuration and throw it away, so that what is wrong with it shows at once.

    Raises:
        PositionError: an unknown position model, encoding or option, or one that cannot decode.
        ConfigError: an option of the Transformer that there is not, or more GPUs than there are.
    """
    encoder, decoder = (
        _built(position, config.model.dims(side), f"{side}_position")
        for side, position in (("encoder", config.encoder_position), ("decoder", config.decoder_position))
    )
    EncoderDecoder(config.model, 8, encoder, decoder)
    check_devices(config.training)


def _built(position: Any, dims: Dims, key: str) -> PositionModel:
    try:
        return build(position, dims)
    except StructPEError as error:
        raise error.at(key) from None


def same(folder: Path, config: GraphToTextConfig) -> None:
    """See to it that the run in the folder is one of this configuration.

    Raises:
        ConfigError: it is one of another.
        StoreError: it is not known of which, or a file is damaged.
    """
    folders.unbroken(folder, SEALED)
    folders.same(folder, config, load_config, FREE)


def begin(folder: Path, config: GraphToTextConfig, preparer: Preparer, positions: dict[str, Any]) -> None:
    """Remove what the folder holds of an earlier run, and write down all that a new one follows from."""
    clear(folder, FILES)
    preparer.save(folder)
    text = json.dumps(positions, indent=2, ensure_ascii=False)
    atomic_write(folder / "positions.json", lambda hidden: hidden.write_text(text, encoding="utf-8"))
    atomic_write(folder / "config.yaml", lambda hidden: save(config, hidden))
    seal(folder, SEALED)


def fit(config: GraphToTextConfig, items: Sequence[Item]) -> tuple[Preparer, dict[str, Any]]:
    """The preparer, and the description of the position models, as they learn from the training split."""
    preparer = Preparer.fit(items, config.prepare)
    positions = {
        "encoder": fitted(
            config.encoder_position, config.model.dims("encoder"), lambda: [preparer.structure(item) for item in items]
        ),
        "decoder": fitted(config.decoder_position, config.model.dims("decoder"), lambda: []),
    }
    return preparer, positions


def restore(folder: Path) -> tuple[Preparer, dict[str, Any]]:
    """What :func:`fit` gave when the run began.

    Raises:
        StoreError: a file is missing or damaged.
    """
    folders.unbroken(folder, SEALED)
    preparer, file = Preparer.load(folder), folder / "positions.json"
    with undamaged(file, AFRESH):
        positions = json.loads(file.read_text(encoding="utf-8"))
        return preparer, {side: positions[side] for side in ("encoder", "decoder")}


def model(config: GraphToTextConfig, preparer: Preparer, positions: dict[str, Any]) -> EncoderDecoder:
    """The model as it is before training."""
    torch.manual_seed(config.training.seed)
    encoder, decoder = (build(positions[side], config.model.dims(side)) for side in ("encoder", "decoder"))
    return EncoderDecoder(config.model, preparer.vocabulary_size, encoder, decoder, preparer.edge_types.size)


def load(folder: str | Path) -> tuple[EncoderDecoder, Preparer, GraphToTextConfig]:
    """The best model of a run, ready for use; the preparer; the configuration.

    Raises:
        StoreError: the folder holds no run, training has not yet written a model, or a file is damaged.
    """
    folder = Path(folder)
    if not (folder / "config.yaml").exists():
        raise StoreError(f"{folder} holds no config.yaml; give the folder of a run, the 'out' of its configuration")
    if not (folder / WEIGHTS).exists():
        raise StoreError(f"{folder} holds no model.safetensors; training writes it at the first validation")
    folders.unbroken(folder, SEALED)
    config = load_config(folder / "config.yaml")
    preparer, positions = restore(folder)
    made = model(config, preparer, positions)
    with undamaged(folder / WEIGHTS, AFRESH):
        made.load_state_dict(load_weights(folder / WEIGHTS, AFRESH))
    return made.eval(), preparer, config
