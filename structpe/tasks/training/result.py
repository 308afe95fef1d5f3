"""The files of a run with its weights and its result, each with a digest that ties it to the other.

Weights are a safetensors file. Its metadata hold a digest of all tensors (names, types, shapes and bytes) and the
identity of the run, and are replaced together with the weights, as they are in the same file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
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
    "check_fit",
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
"""The key of ``VERSION:DIGEST``, or ``VERSION:DIGEST:RUN``, in the metadata. The order of several keys would be
random."""
VERSION = "4"
"""Raised when older weights no longer fit, because layers have other names or compute something else."""
DAMAGED = "the weights are not those that were written: a part of the file has changed"


def save_weights(model: nn.Module, path: Path, writes: bool = True, run: str = "") -> None:
    """Write the parameters and buffers of a model.

    Args:
        model: the model. If its parameters are sharded, all devices must call this.
        path: the file.
        writes: whether this process writes the file.
        run: identity of the run; empty without a run.

    Raises:
        StructPEError: a number is not finite; nothing is written.
    """
    from safetensors.torch import save_file

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in gathered(model).items()}
    check_finite(tensors)
    if not writes:
        return
    written = ":".join([VERSION, digest(tensors), *([run] if run else [])])
    atomic_write(path, lambda hidden: save_file(tensors, hidden, metadata={KEY: written}))


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """Check that all weights are finite.

    Raises:
        StructPEError: a number is not finite.
    """
    if name := _not_finite(tensors):
        raise StructPEError(
            f"the weights {name} are no longer finite: training has diverged; lower "
            f"training.optimiser.learning_rate, or raise training.optimiser.warmup; earlier files are kept"
        )


def gathered(module: nn.Module) -> dict[str, Tensor]:
    """The complete state of a module. If it is sharded, all devices must call this."""
    return {name: full(value) for name, value in module.state_dict().items()}


def full(value: Any) -> Any:
    """The complete tensor of a sharded one; all devices must call this. Other values are returned unchanged."""
    from torch.distributed.tensor import DTensor  # takes half a second to import

    return value.full_tensor() if isinstance(value, DTensor) else value


def recorded_digest(path: Path) -> str:
    """The digest in the metadata of a file of weights; empty without a file."""
    return _written(path)[1] if path.is_file() else ""


def load_weights(path: Path, remedy: str, run: str = "") -> dict[str, Tensor]:
    """Read what :func:`save_weights` wrote.

    Args:
        path: the file.
        remedy: what to do if it is damaged, for the error.
        run: identity of the run that the weights must belong to. Weights without an identity, of an older structpe,
            are accepted.

    Raises:
        StoreError: the file is missing or damaged, has another version or another run, or the weights are not finite.
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
        raise StoreError(f"the weights {name} are not finite, and no output would be; {remedy}").at(path)
    return tensors


def _written(path: Path) -> tuple[str, str, str]:
    """The version, the digest and the run in the metadata of a file; each is empty if it is missing."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        found = (file.metadata() or {}).get(KEY, "").split(":")
    return (found[0], found[1], found[2] if len(found) > 2 else "") if len(found) > 1 else ("", found[0], "")


def _not_finite(tensors: Mapping[str, Tensor]) -> str:
    """The name of the first tensor with a number that is not finite; empty if there is none."""
    these = (name for name, each in tensors.items() if each.is_floating_point() and not each.isfinite().all())
    return next((repr(name) for name in these), "")


def digest(tensors: Mapping[str, Tensor]) -> str:
    """A digest of the names, types, shapes and bytes of tensors, sorted by name."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


OTHERWISE = "give the config.yaml that they were trained with"


def check_fit(make: Callable[[], nn.Module], path: Path, remedy: str, but: Sequence[str] = ()) -> None:
    """Compare the header of a file of weights with a model on the meta device: the configuration may be very large.

    A file that is missing or has another version is left to :func:`load_weights`.

    Args:
        make: makes the model.
        path: the file.
        remedy: what to do if it is damaged, for the error.
        but: prefixes of the names of weights that may differ.

    Raises:
        StoreError: the file is damaged, or has weights of other names or shapes than the model.
    """
    if (there := _shapes(path, remedy)) is None:
        return
    try:
        with torch.device("meta"):
            draft = make()
    except Exception:  # a custom model may need real values; any other error is raised again when the model is made
        return
    here = {name: tuple(tensor.shape) for name, tensor in draft.state_dict().items()}
    names = [name for name in {**here, **there} if not name.startswith(tuple(but))]
    wrong = [name for name in names if here.get(name) != there.get(name)]
    if wrong:
        name = wrong[0]
        raise StoreError(
            f"the weights do not fit this model: {name} has {_said(there.get(name))} in the file and "
            f"{_said(here.get(name))} by the configuration, and {len(wrong) - 1} others differ; "
            f"{OTHERWISE}, or {remedy}"
        ).at(path)


def _shapes(path: Path, remedy: str) -> dict[str, tuple[int, ...]] | None:
    """The shape of each tensor; None if the file is missing or has another version."""
    from safetensors import safe_open

    if not path.is_file():
        return None
    with undamaged(path, remedy), safe_open(path, "pt") as file:
        if (file.metadata() or {}).get(KEY, "").partition(":")[0] != VERSION:
            return None
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def _said(shape: tuple[int, ...] | None) -> str:
    return "nothing" if shape is None else f"shape {shape}"


FILE = "result.json"


@dataclass(frozen=True)
class StoredResult:
    """Base class of the results of runs, which are stored in a file of their folder."""

    remedy: ClassVar[str]
    """What to do if the file is damaged, for errors."""

    def save(self, folder: Path, of: Mapping[str, str] | None = None) -> None:
        """Write the result. The run is then finished.

        Args:
            folder: the folder of the run.
            of: digests of the ``run`` and of the ``weights`` that the result belongs to.
        """
        atomic_text(folder / FILE, sealed_lines({**asdict(self), "of": dict(of or {})}))

    @classmethod
    def of(cls, folder: Path) -> dict[str, str]:
        """The digests that :meth:`save` wrote; an older structpe did not write all of them."""
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
    """The result of a training.

    Attributes:
        steps: number of steps.
        best_step: the step with the best model.
        best: scores of the best model on the validation split; empty without a split, when the last model is kept.
        stopped_early: whether training stopped because the model no longer improved.
        step_seconds: median time of a step: forward, backward and update, without making the batch.
        seconds: total time, including validations, over all processes that resumed the training.
        cpu_seconds: CPU time over all threads, of one device, without workers that collate.
        epochs: number of times that each training example was seen.
        peak_bytes: peak memory of a process, or of the GPU.
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
