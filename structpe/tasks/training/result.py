"""The weights and the result of a run, which name each other.

The file is safetensors; its metadata hold a digest of all tensors: names, types, shapes and bytes, and the identity of
the run that they are of. As they are in the file itself, weights and digest are replaced at one stroke.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec
import torch
from torch import Tensor, nn

from structpe.errors import StoreError, StructPEError, undamaged
from structpe.system.files import atomic_text, atomic_write, read_sealed, sealed_lines

__all__ = [
    "FILE",
    "WEIGHTS",
    "Result",
    "StoredResult",
    "check_finite",
    "digest",
    "full",
    "gathered",
    "load_weights",
    "recorded_digest",
    "save_weights",
]


WEIGHTS = "model.safetensors"
"""The file of the best model's weights, in the folder of a run."""
KEY = "sha256"
"""Under which the metadata hold ``VERSION:DIGEST``, and ``:RUN`` of a run; one key, as several are ordered at
random."""
VERSION = "4"
"""Raised when weights of before no longer fit the models, as layers have other names or compute something else."""
DAMAGED = "the weights are not those that were written: a part of the file has changed"


def save_weights(model: nn.Module, path: Path, writes: bool = True, run: str = "") -> None:
    """Write the parameters and buffers of a model.

    Args:
        model: where its parameters are shared out to several devices, all of them must call this.
        path: the file.
        writes: whether this process is the one that writes.
        run: identity of the run; empty for weights of none.

    Raises:
        StructPEError: they are not all finite numbers; nothing is written then.
    """
    from safetensors.torch import save_file

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in gathered(model).items()}
    check_finite(tensors)
    if not writes:
        return
    written = ":".join([VERSION, digest(tensors), *([run] if run else [])])
    atomic_write(path, lambda hidden: save_file(tensors, hidden, metadata={KEY: written}))


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """Check that a training may keep these weights.

    Raises:
        StructPEError: they are not all finite numbers.
    """
    if name := _not_finite(tensors):
        raise StructPEError(
            f"the weights {name} are no finite numbers any more: training has diverged; lower "
            f"training.learning_rate, or raise training.warmup; what was written before is kept"
        )


def gathered(module: nn.Module) -> dict[str, Tensor]:
    """The state of a module, whole; where it is shared out to several devices, all of them must call this."""
    return {name: full(value) for name, value in module.state_dict().items()}


def full(value: Any) -> Any:
    """A tensor of which devices have parts, whole; all of them must call this. Anything else as it is."""
    from torch.distributed.tensor import DTensor  # takes half a second to import

    return value.full_tensor() if isinstance(value, DTensor) else value


def recorded_digest(path: Path) -> str:
    """The digest of the weights that a file says it holds; empty without such a file."""
    return _written(path)[1] if path.is_file() else ""


def load_weights(path: Path, remedy: str, run: str = "") -> dict[str, Tensor]:
    """What :func:`save_weights` wrote.

    Args:
        path: the file.
        remedy: what to do where it is damaged.
        run: identity of the run that the weights must be of; those of an older structpe, which wrote none, are taken.

    Raises:
        StoreError: the file is missing, damaged, of another version or another run, or the weights are not finite.
    """
    from safetensors import safe_open

    if not path.is_file():
        raise StoreError(f"there is no such file; {remedy}").at(path)
    with undamaged(path, remedy), safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    version, found, owner = _written(path)
    if version != VERSION:
        raise StoreError(
            f"the weights have version {version or '1'}, this structpe reads version {VERSION}, as layers of its "
            f"models have other names or compute something else; use the structpe that wrote them; {remedy}"
        ).at(path)
    if found != digest(tensors):
        raise StoreError(f"{DAMAGED}; {remedy}").at(path)
    if run and owner not in ("", run):
        raise StoreError(
            f"the weights are those of another run: of another configuration, or with other files that a run learns "
            f"before training; {remedy}"
        ).at(path)
    if name := _not_finite(tensors):
        raise StoreError(f"the weights {name} are no finite numbers, so that no output would be; {remedy}").at(path)
    return tensors


def _written(path: Path) -> tuple[str, str, str]:
    """The version, the digest and the run that a file says it holds; empty where it does not say it."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        found = (file.metadata() or {}).get(KEY, "").split(":")
    return (found[0], found[1], found[2] if len(found) > 2 else "") if len(found) > 1 else ("", found[0], "")


def _not_finite(tensors: Mapping[str, Tensor]) -> str:
    """The name of the first that is not; empty if all are."""
    these = (name for name, each in tensors.items() if each.is_floating_point() and not each.isfinite().all())
    return next((repr(name) for name in these), "")


def digest(tensors: Mapping[str, Tensor]) -> str:
    """Of names, types, shapes and bytes of tensors, in the order of their names."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


FILE = "result.json"


@dataclass(frozen=True)
class StoredResult:
    """The result of a run, in a file of its folder."""

    remedy: ClassVar[str]
    """What to do if the file is damaged."""

    def save(self, folder: Path, of: Mapping[str, str] | None = None) -> None:
        """Write it; from then on the run is finished.

        Args:
            folder: of the run.
            of: digests of what it is the result of, by their names: the ``run``, the ``weights``.
        """
        atomic_text(folder / FILE, sealed_lines({**asdict(self), "of": dict(of or {})}))

    @classmethod
    def of(cls, folder: Path) -> dict[str, str]:
        """The digests that the file of :meth:`save` holds; those that an older structpe did not write are not there."""
        file = folder / FILE
        if not file.exists():
            return {}
        with undamaged(file, cls.remedy):
            return msgspec.convert(read_sealed(file.read_text(encoding="utf-8")).get("of", {}), dict[str, str])

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """The result in the folder of a run; None if the run is not finished."""
        file = folder / FILE
        if not file.exists():
            return None
        with undamaged(file, cls.remedy):
            return msgspec.convert(read_sealed(file.read_text(encoding="utf-8")), cls)


@dataclass(frozen=True)
class Result(StoredResult):
    """How a training ended.

    Attributes:
        steps: how many it took.
        best_step: after which of them the model was best.
        best: its scores on the validation split; empty without a split, where the last model is kept.
        stopped_early: whether training stopped because the model got no better.
        step_seconds: median time of a step: forward, backward, update; without making the batch.
        seconds: time that training took in all, validations included; of all processes that worked on it.
        cpu_seconds: of them, time of the CPU, over all threads; without workers that collate, and of one device.
        epochs: how often each training example was seen.
        peak_bytes: most memory that a process that worked on it, or the GPU, had in use.
    """

    remedy = "remove it, and the training goes on from its last checkpoint"

    steps: int
    best_step: int
    best: dict[str, float]
    stopped_early: bool
    step_seconds: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    epochs: float = 0.0
    peak_bytes: int = 0

    def __str__(self) -> str:
        scores = "  ".join(f"{name} {score:.4g}" for name, score in self.best.items())
        why = "as the model got no better" if self.stopped_early else "as many as were asked for"
        return f"{self.steps} steps, {why}; best after {self.best_step}" + (f": {scores}" if scores else "")
