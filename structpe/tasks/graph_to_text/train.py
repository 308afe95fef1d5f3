"""Train a model of graph to text, or go on with a training that was interrupted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from structpe.data.digests import Content, digest, structures
from structpe.data.prepare import Example, Preparer
from structpe.errors import ConfigError, MissingExtra
from structpe.nn.seq2seq import EncoderDecoder
from structpe.readers import Item
from structpe.tasks.graph_to_text import run
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.graph_to_text.source import read_split
from structpe.tasks.graph_to_text.task import GraphToText
from structpe.tasks.training.batches import Batches, Plan
from structpe.tasks.training.config import TrainingConfig
from structpe.tasks.training.folder import learned, lock
from structpe.tasks.training.progress import say
from structpe.tasks.training.result import Result

__all__ = ["train"]


def train(config: GraphToTextConfig, fresh: bool = False) -> Result:
    """Train to the end. A run that was killed goes on from its newest checkpoint, and ends as if it had not been.

    On the CPU, with the same number of threads, the resumed run gives the same bits.

    Args:
        config: everything that the run follows from.
        fresh: remove what the folder holds of an earlier run, and begin anew. It is removed when the new configuration
            is known to make sense, and its data are read and encoded.

    Raises:
        ConfigError: the folder holds a run of another configuration, another process trains in it, or an item has no
            text to learn from.
        PositionError: the configuration asks for a position model that there is not, or for one that cannot take the
            largest graph or the longest text.
        StoreError: checkpoints are damaged, or the data are not those that the run began with.
        ReadError: a file of the data is missing or bad.
        MissingExtra: Lightning is not installed.
    """
    run.check(config)
    folder = Path(config.out)
    with lock(folder):
        fresh = fresh or not learned(folder)
        if not fresh:
            run.same(folder, config)
            if (result := Result.load(folder)) is not None:
                say(f"{folder}: this run is finished: {result}; to train again, ask for a fresh one or another folder")
                return result
        train_items = _with_texts(read_split(config.data, "train"))
        dev_items = _with_texts(read_split(config.data, "dev")) if config.data.dev else []
        return _train(folder, config, train_items, dev_items, fresh)


def _train(
    folder: Path, config: GraphToTextConfig, items: Sequence[Item], dev_items: Sequence[Item], fresh: bool
) -> Result:
    preparer, positions = run.fit(config, items) if fresh else run.restore(folder)
    model = run.model(config, preparer, positions)
    encodings = model.encoder.position.encodings
    examples = preparer.examples(items, encodings, every_text=True)
    dev = preparer.examples(dev_items, encodings)
    _tell(items, examples, dev, model)
    _try(model, preparer, [*examples, *dev])
    if fresh:
        run.begin(folder, config, preparer, positions)
    task = GraphToText(model, preparer, dev, config)
    result = _fit(folder, config.training, task, examples, _content(task, examples, positions))
    result.save(folder)
    say(f"{folder}: finished: {result}")
    return result


def _fit(
    folder: Path, training: TrainingConfig, task: GraphToText, examples: Sequence[Example], content: Content
) -> Result:
    try:
        from structpe.tasks.training.fit import fit  # Lightning takes seconds to import
    except ModuleNotFoundError as missing:
        raise MissingExtra(str(missing.name), "train") from missing
    sizes = np.array([example.cost for example in examples])
    plan = Plan(sizes, training.batch_size, training.seed, training.devices, content)
    count = training.steps * training.accumulate
    return fit(task, Batches(examples, plan, task.collate, count, workers=training.workers), training, folder)


def _try(model: EncoderDecoder, preparer: Preparer, examples: Sequence[Example]) -> None:
    """Write the longest text of all, and read the largest graph: what a position model cannot take is known at once.

    Raises:
        PositionError: a text or graph is larger than a table of positions, say.
    """
    graph = max(examples, key=lambda e: e.graph.size)
    text = max(examples, key=lambda e: 0 if e.graph.target is None else len(e.graph.target))
    model.eval()
    with torch.no_grad():
        for example in (graph, text):
            model(preparer.collate([example], grouping=model.encoder.grouping))
    model.train()


def _with_texts(items: list[Item]) -> list[Item]:
    for item in items:
        if not item.texts:
            raise ConfigError(f"item {item.id!r} has no text to learn from or to be scored against; leave it out")
    return items


def _content(task: GraphToText, examples: Sequence[Example], positions: Mapping[str, Any]) -> dict[str, str]:
    """Digests of all that a run follows from besides its configuration."""
    preparer = task.preparer
    found = {
        "vocabulary": digest([preparer.tokenizer.to_str()]),
        "numbers of relation labels": digest([preparer.edge_types.relations]),
        "position models": digest([json.dumps(positions, sort_keys=True)]),
        "versions of encodings": digest(each.versions() for each in task.model.encoder.position.encodings),
    }
    for what, each in (("training", examples), ("validation", task.dev)):
        found |= structures(f"{what} graphs", [example.structure for example in each])
        found[f"ids of units of the {what} graphs"] = digest(example.graph.x for example in each)
        found[f"{what} texts"] = digest((example.texts, example.graph.target) for example in each)
    return found


def _tell(items: Sequence[Item], examples: Sequence[Example], dev: Sequence[Example], model: EncoderDecoder) -> None:
    parameters = sum(p.numel() for p in model.parameters())
    say(f"{len(examples)} training texts of {len(items)} graphs, {len(dev)} for validation, {parameters:,} parameters")
    if left := sum(len(item.texts) for item in items) - len(examples):
        say(f"{left} texts longer than prepare.longest_target are left out of training")
    if not examples:
        raise ConfigError("all training texts are longer than prepare.longest_target; raise it")
