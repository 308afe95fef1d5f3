"""The folder of a run: all that is needed to go on training, or to use the model.

=====================  ==================================================================================
config.yaml            the configuration, every key
tokenizer.json         the subword vocabulary
prepare.json           the form of the graph, numbers of edge labels
positions.json         the position models, with what their encodings learned of the training data
model.safetensors      weights of the best model so far
checkpoints/step-N/    what training goes on from: ``tensors.safetensors`` and ``state.json``, no pickle
metrics.csv            step, metric, value
tensorboard/           the same for TensorBoard
result.json            how training ended; there is none before
=====================  ==================================================================================
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from structpe.data.prepare import Preparer
from structpe.errors import ConfigError, StoreError
from structpe.nn.seq2seq import EncoderDecoder
from structpe.positions.build import build
from structpe.readers import Item
from structpe.tasks.config import differences, save
from structpe.tasks.graph_to_text.config import GraphToTextConfig, load_config
from structpe.tasks.positions import fitted
from structpe.tasks.training.files import whole_file

__all__ = ["alone", "begin", "check", "clear", "load", "prepare", "same"]

FILES = ("result.json", "config.yaml", "positions.json", "prepare.json", "tokenizer.json", "model.safetensors",
         "metrics.csv")  # fmt: skip
FREE = ("out", "name", "data.test", "training.workers")
"""Keys that may change when a run goes on, as nothing in training follows from them."""


def check(config: GraphToTextConfig) -> None:
    """Build a small model of the configuration and throw it away, so that what is wrong with it shows at once.

    Raises:
        PositionError: an unknown position model, encoding or option, or one that cannot decode.
        ConfigError: an option of the Transformer that there is not.
    """
    encoder, decoder = (
        build(position, config.model.dims(side))
        for side, position in (("encoder", config.encoder_position), ("decoder", config.decoder_position))
    )
    EncoderDecoder(config.model, 8, encoder, decoder)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep the folder to this process; the lock goes when the process does, however it ends.

    Raises:
        ConfigError: another process is training in it.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout:
        raise ConfigError(f"another process is training in {folder}; wait for it, or choose another folder") from None


def same(folder: Path, config: GraphToTextConfig) -> None:
    """See to it that the folder holds no run of another configuration.

    Raises:
        ConfigError: it does.
    """
    written = folder / "config.yaml"
    if not written.exists():
        return
    if other := [key for key in differences(load_config(written), config) if key not in FREE]:
        raise ConfigError(
            f"{folder} holds a run of another configuration; they differ in {', '.join(other)}. Bring these back to go "
            f"on with that run, choose another folder (out), or train afresh (fresh), which removes that run"
        )


def begin(folder: Path, config: GraphToTextConfig) -> None:
    """Write the configuration down; from here on the folder holds a run."""
    if not (folder / "config.yaml").exists():
        whole_file(folder / "config.yaml", lambda hidden: save(config, hidden))


def clear(folder: Path) -> None:
    """Remove a run, and nothing else that may lie in the folder."""
    for file in FILES:
        (folder / file).unlink(missing_ok=True)
    for inner in ("checkpoints", "tensorboard"):
        shutil.rmtree(folder / inner, ignore_errors=True)


def prepare(folder: Path, config: GraphToTextConfig, items: Sequence[Item]) -> tuple[EncoderDecoder, Preparer]:
    """A new model and the preparer that was fitted on the training split; both as before where the run goes on."""
    if (folder / "positions.json").exists():  # written last
        preparer = Preparer.load(folder)
        return _model(folder, config, preparer), preparer
    preparer = Preparer.fit(items, config.prepare)
    preparer.save(folder)
    positions = {
        "encoder": fitted(
            config.encoder_position, config.model.dims("encoder"), lambda: [preparer.structure(item) for item in items]
        ),
        "decoder": fitted(config.decoder_position, config.model.dims("decoder"), lambda: []),
    }
    text = json.dumps(positions, indent=2, ensure_ascii=False)
    whole_file(folder / "positions.json", lambda hidden: hidden.write_text(text, encoding="utf-8"))
    return _model(folder, config, preparer), preparer


def load(folder: str | Path) -> tuple[EncoderDecoder, Preparer, GraphToTextConfig]:
    """The best model of a run, ready for use; the preparer; the configuration.

    Raises:
        StoreError: the folder holds no run, or training has not yet written a model.
    """
    from safetensors.torch import load_file

    folder = Path(folder)
    if not (folder / "config.yaml").exists():
        raise StoreError(f"{folder} holds no config.yaml; give the folder of a run, the 'out' of its configuration")
    if not (folder / "model.safetensors").exists():
        raise StoreError(f"{folder} holds no model.safetensors; training writes it at the first validation")
    config = load_config(folder / "config.yaml")
    preparer = Preparer.load(folder)
    model = _model(folder, config, preparer)
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model.eval(), preparer, config


def _model(folder: Path, config: GraphToTextConfig, preparer: Preparer) -> EncoderDecoder:
    positions: dict[str, Any] = json.loads((folder / "positions.json").read_text(encoding="utf-8"))
    torch.manual_seed(config.training.seed)
    encoder, decoder = (build(positions[side], config.model.dims(side)) for side in ("encoder", "decoder"))
    return EncoderDecoder(config.model, preparer.vocabulary_size, encoder, decoder, preparer.edge_types.size)
