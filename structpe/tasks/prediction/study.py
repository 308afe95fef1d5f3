"""Studies: each combination of data, model, position and seed is a run; a study can be interrupted and resumed."""

from __future__ import annotations

import datetime
import fnmatch
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

import structpe
from structpe.errors import ConfigError, located
from structpe.nn.graph_model import GraphModelConfig
from structpe.plain.options import RUNS
from structpe.registry import unknown
from structpe.tasks import config as configurations
from structpe.tasks.prediction.config import PredictionConfig, PredictionTraining, SamplingConfig

__all__ = ["Key", "Published", "StudyConfig", "by_row", "load_study", "versions"]


@dataclass(frozen=True)
class Published:
    """A published number, which the table shows next to ours.

    Args:
        data: name of the data in the study.
        name: name of the model.
        value: value on the test split.
        source: the publication.
        deviation: deviation over seeds; null if not published.
        seeds: number of runs that the value is a mean of; null if not published.
        row: model and position of the row that reproduces it, such as ``[gcn, none]``; null for none. If ``deviation``
            and ``seeds`` are there, the table says by how many standard errors both differ.
    """

    data: str
    name: str
    value: float
    source: str
    deviation: float | None = None
    seeds: int | None = None
    row: list[str] | None = None


@dataclass(frozen=True, order=True)
class Key:
    """A run of a study: names of its data, model and position, and its seed."""

    data: str
    model: str
    position: str
    seed: int

    def __str__(self) -> str:
        return f"{self.data}/{self.model}/{self.position}/seed-{self.seed}"


@dataclass(frozen=True)
class StudyConfig:
    """The configuration of a study. Each run has one data set, one model, one position and one seed.

    A run with seed s uses the official split number s, modulo the number of splits: for a benchmark with ten splits,
    the mean over ten seeds is the mean over its splits.

    Args:
        data: by name: ``name`` of a benchmark, its ``folder``, by default ``root`` itself, and ``options``; and
            differences of the run's configuration from the study's: ``model``, ``training``, ``sampling``.
        models: by name: sizes and options of the model; ``training`` and ``sampling`` as above.
        positions: by name: a position model, a mapping with ``name`` and options, or a list of these.
        rows: pairs of model and position to run; null for each model with each position.
        seeds: seeds of the runs.
        training: how models are trained.
        sampling: how a large graph is sampled for training.
        published: published numbers for the table.
        root: folder that contains the folders of ``data``.
        out: folder of the study.
        imports: modules or Python files of one's own; see :func:`~structpe.registry.import_code`.
    """

    data: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]
    positions: dict[str, Any] = field(default_factory=lambda: {"none": []})
    rows: list[list[str]] | None = None
    seeds: list[int] = field(default_factory=lambda: [0])
    training: dict[str, Any] = field(default_factory=dict)
    sampling: dict[str, Any] = field(default_factory=dict)
    published: list[Published] = field(default_factory=list)
    root: str = "."
    out: str = "runs/study"
    imports: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        configurations.check_folder("out", self.out)
        for what in ("data", "models", "positions", "seeds", "rows"):
            if getattr(self, what) is not None and not len(getattr(self, what)):
                raise ConfigError(f"{what} is empty; a study needs one at least")
        for what in ("data", "models", "positions"):
            for name in getattr(self, what):
                if not name or name.startswith(".") or set(name) & set("/\\*?[] "):
                    raise ConfigError(
                        f"{what}: {name!r} names a folder; leave out blanks, slashes, *?[] and dots in front"
                    )
        for number, row in enumerate(self.rows or []):
            self._check_row(f"rows[{number}]", row)
        for place, what in enumerate(("models", "positions") if self.rows else ()):
            if unused := sorted(set(getattr(self, what)) - {row[place] for row in self.rows or []}):
                raise ConfigError(f"{what}: {unused[0]} has no effect, as rows are given and none has it; leave it out")
        self._check_twice("seeds", list(map(str, self.seeds)))
        self._check_twice("rows", [", ".join(row) for row in self.rows or []])
        count = (
            len(self.seeds) * len(self.data) * len(self.rows or self.models) * (1 if self.rows else len(self.positions))
        )
        if count > RUNS:
            raise ConfigError(f"the study has {count} runs; at most {RUNS} are allowed, share it out to several")
        for theirs in self.published:
            if theirs.data not in self.data:
                raise ConfigError(f"published, {theirs.name}: {unknown('data', theirs.data, list(self.data))}")
            if theirs.row is not None:
                self._check_row(f"published, {theirs.name}: row", theirs.row)

    def _check_twice(self, what: str, given: list[str]) -> None:
        if twice := [each for each, times in Counter(given).items() if times > 1]:
            raise ConfigError(f"{what}: {twice[0]} stands there twice; keep one")

    def _check_row(self, where: str, row: list[str]) -> None:
        if len(row) != 2:
            raise ConfigError(f"{where} is {row}; a pair [model, position] is needed")
        for what, name, known in (("model", row[0], self.models), ("position", row[1], self.positions)):
            if name not in known:
                raise ConfigError(f"{where}: {unknown(what, name, list(known))}")

    def keys(self, only: Sequence[str] = ()) -> list[Key]:
        """All runs, seed by seed: an unfinished study then has all its rows early.

        Args:
            only: patterns such as ``zinc/*/rwse/*``; only runs that match one of them are returned.

        Raises:
            ConfigError: no run matches one of the patterns.
        """
        pairs = self.rows or [[model, position] for model in self.models for position in self.positions]
        keys = [
            Key(data, model, position, seed) for seed in self.seeds for data in self.data for model, position in pairs
        ]
        if idle := [pattern for pattern in only if not any(fnmatch.fnmatch(str(key), pattern) for key in keys)]:
            raise ConfigError(f"no run matches {' or '.join(idle)}; runs are called such as {keys[0]}")
        return [key for key in keys if not only or any(fnmatch.fnmatch(str(key), pattern) for pattern in only)]

    def folder(self, key: Key) -> Path:
        """The folder of a run."""
        return Path(self.out) / str(key)

    def run(self, key: Key) -> PredictionConfig:
        """The configuration of a run.

        Raises:
            ConfigError: a key is unknown, or a value has the wrong type.
        """
        with located(str(key)):
            return configurations.make(PredictionConfig, self._plain(key))

    def _plain(self, key: Key) -> dict[str, Any]:
        """The plain data of a run's configuration: values of the model override those of the data and the study."""
        data, model = dict(self.data[key.data]), dict(self.models[key.model])
        common = {"training": (PredictionTraining, self.training), "sampling": (SamplingConfig, self.sampling)}
        parts: dict[str, Any] = {
            name: configurations.merged(
                kind, *(_part(each, name) for each in (mine, data.pop(name, {}), model.pop(name, {})))
            )
            for name, (kind, mine) in common.items()
        }
        parts["model"] = configurations.merged(GraphModelConfig, model, _part(data.pop("model", {}), "model"))
        folder = data.get("folder", "")
        if isinstance(folder, str):
            data["folder"] = str(Path(self.root) / folder)
        return {
            "data": data,
            "position": self.positions[key.position],
            "out": str(self.folder(key)),
            "name": str(key),
            "imports": self.imports,
            **parts,
            "training": {**parts["training"], "seed": key.seed},
        }


def _part(given: Any, name: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ConfigError(f"{name} takes a mapping; given is {given!r}")
    return given


def load_study(path: str | Path, overrides: Sequence[str] = ()) -> StudyConfig:
    """Read a study from a YAML file, with overrides such as ``training.steps=100``.

    Raises:
        ConfigError: the file is missing or not YAML, a key is unknown or missing, or a value has the wrong type.
    """
    return configurations.load(StudyConfig, path, overrides, configurations.import_all)


def by_row(keys: Sequence[Key]) -> dict[tuple[str, str, str], list[Key]]:
    """Group runs that differ only in their seed, by data, model and position."""
    rows: dict[tuple[str, str, str], list[Key]] = {}
    for key in keys:
        rows.setdefault((key.data, key.model, key.position), []).append(key)
    return rows


def versions(device: torch.device) -> dict[str, str]:
    """Versions of the software, the commit, the machine and the day.

    Args:
        device: the device of the runs.
    """
    processor = f"{device.type.upper()}, {os.cpu_count()} cores"
    return {
        "structpe": structpe.__version__,
        "commit": _commit(),
        "torch": torch.__version__,
        "lightning": version("lightning"),
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else processor,
        "threads": str(torch.get_num_threads()),
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


@cache
def _commit() -> str:
    """The commit of the checkout of the library; empty if it is installed from a package.

    It is cached: later, git may name a new commit, whose code this process has not loaded.
    """
    here = Path(structpe.__file__)
    try:
        # The folder of the library may be inside another checkout, without being a part of it.
        _git(here.parent, "ls-files", "--error-unmatch", here.name)
        return _git(here.parent, "describe", "--always", "--dirty", "--abbrev=12")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
