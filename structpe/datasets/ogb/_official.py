"""Data sets of the Open Graph Benchmark (Hu et al. 2020), read by the loaders of ``ogb`` itself.

``ogb`` 1.3.6 does not run with current versions of torch, unpickles any file, asks questions on standard input, prints,
and uses the network when it is imported. :func:`safe_loaders` prevents all this while a data set is read. It changes
the modules of ``ogb`` only, not torch.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from structpe.datasets.base import Split
from structpe.datasets.ogb._pickles import load, save
from structpe.errors import ConfigError, MissingExtra, ReadError, StructPEError, reason_of

__all__ = ["Kind", "Raw", "official", "own", "safe_loaders"]

Kind = Literal["graph", "node"]
CLASSES = {"graph": "GraphPropPredDataset", "node": "NodePropPredDataset"}
MODULES = (
    *(f"ogb.{kind}proppred.{name}" for kind in CLASSES for name in ("dataset", "dataset_pyg")),
    *(f"ogb.{name}" for name in ("io.read_graph_raw", "io.read_graph_pyg")),
)
META = (
    *("version", "binary", "num tasks", "num classes", "task type", "eval metric", "add_inverse_edge", "split"),
    *("download_name", "url", "additional node files", "additional edge files"),
)


@dataclass(frozen=True)
class Raw:
    """A data set as ``ogb`` returns it.

    Attributes:
        name: name of the data set.
        folder: its folder.
        meta: its metadata in ``ogb``.
        graphs: dictionaries with ``edge_index`` (2, e), ``num_nodes``, ``node_feat`` (n, k) or None, ``edge_feat``
            (e, k) or None, and further arrays ``node_*`` and ``edge_*``.
        labels: (items, tasks), or a list of words for each graph.
        split: the official split.
    """

    name: str
    folder: Path
    meta: Mapping[str, Any]
    graphs: list[dict[str, Any]]
    labels: NDArray[Any] | list[list[str]]
    split: Split


def official(kind: Kind, name: str, folder: Path, download: bool = False) -> Raw:
    """Read a data set of OGB from the folder of its name in ``folder``, or fetch it into this folder.

    Raises:
        ReadError: it is missing, or cannot be fetched, read or trusted.
        MissingExtra: ``ogb`` is not installed.
    """
    package = _imported(f"ogb.{kind}proppred")
    import pandas

    master = pandas.read_csv(_folder(package) / "master.csv", index_col=0, keep_default_na=False)
    meta = {key: master[name][key] for key in master.index}
    place = folder / name.replace("-", "_")
    if not _there(place, meta):
        what = "there is no such folder" if not place.exists() else "it holds neither raw/edge.csv.gz nor raw/data.npz"
        if not download:
            raise ReadError(f"{what}; give download=True, or {_by_hand(place, meta)}").at(place)
    elif not (place / f"RELEASE_v{meta['version']}.txt").is_file():
        raise ReadError(
            f"this is not version {meta['version']} of {name} (no file RELEASE_v{meta['version']}.txt); "
            f"{_by_hand(place, meta)}"
        ).at(place)
    return _read(kind, name, place, meta, {"root": str(folder)})


def own(kind: Kind, folder: Path) -> Raw:
    """Read a data set written by ``ogb.io.DatasetSaver``: ``meta_dict.pt`` and the folder of the data.

    Raises:
        ReadError: a file is missing or damaged, or cannot be trusted.
        ConfigError: the graph is heterogeneous.
        MissingExtra: ``ogb`` is not installed.
    """
    meta = load(folder / "meta_dict.pt")
    if not isinstance(meta, dict) or (lacking := [key for key in META if key not in meta]):
        what = f"it lacks {lacking[0]!r}" if isinstance(meta, dict) else "it is not a dictionary"
        raise ReadError(f"{what}; make it by DatasetSaver.get_meta_dict()").at(str(folder / "meta_dict.pt"))
    place = folder / str(meta["download_name"])
    if meta.get("is hetero") == "True":
        raise ConfigError("the graph has nodes of several types, which OGB keeps apart; give a homogeneous one").at(
            folder
        )
    labels = place / "raw" / f"{kind}-label.npz"
    if not _there(place, meta) or not labels.is_file():
        raise ReadError(
            f"raw/data.npz or raw/{labels.name} is missing; unpack {place.name}.zip into this folder, and make sure "
            f"that it is a data set to predict {kind}s of"
        ).at(place)
    return _read(kind, f"ogb{kind[0]}-{place.name}", place, meta, {"meta_dict": {**meta, "dir_path": str(place)}})


def _read(kind: Kind, name: str, place: Path, meta: Mapping[str, Any], where: Mapping[str, Any]) -> Raw:
    with safe_loaders():
        try:
            data = vars(_imported(f"ogb.{kind}proppred"))[CLASSES[kind]](name, **where)
            parts = data.get_idx_split()
        except (StructPEError, MemoryError):
            raise
        except Exception as error:  # of any type
            fetched = _there(place, meta)
            what = "OGB's loader cannot read it" if fetched else f"it could not be fetched from {meta['url']}"
            remedy = "fetch or make it again" if fetched else _by_hand(place, meta)
            raise ReadError(f"{what} ({type(error).__name__}: {reason_of(error)}); {remedy}").at(place) from error
    split = Split(*(np.asarray(parts[part]).astype(np.int64).reshape(-1) for part in Split._fields))
    graphs = list(data.graphs) if kind == "graph" else [data.graph]
    return Raw(name, place, meta, graphs, data.labels, split)


def _there(place: Path, meta: Mapping[str, Any]) -> bool:
    """Whether ``ogb`` finds the data set, by the check that it makes before using the network."""
    raw = "data.npz" if meta["binary"] == "True" else "edge.csv.gz"
    return (place / "raw" / raw).is_file() or (place / "processed" / "data_processed").is_file()


def _by_hand(place: Path, meta: Mapping[str, Any]) -> str:
    return (
        f"fetch {meta['url']}, unpack it in {place.parent}, and call the unpacked folder "
        f"{meta['download_name']!r} {place.name!r}"
    )


@contextmanager
def safe_loaders() -> Iterator[None]:
    """Context in which the loaders of ``ogb`` (its own and those for PyTorch Geometric) run nothing that a file names.

    Files are read by :func:`structpe.datasets.ogb._pickles.load`, and written atomically. A question is an error,
    except whether to download more than a gigabyte, which ``download=True`` has answered. Only the progress of a
    download is printed.
    """
    stand_ins: dict[str, Any] = {
        "torch": SimpleNamespace(**{**vars(torch), "load": load, "save": save}),
        "tqdm": lambda items, **_: items,
        "print": lambda *_, **__: None,
        "input": _refuse,
    }
    put = [(vars(_imported(name)), stand_ins) for name in MODULES]
    put.append((vars(_imported("ogb.utils.url")), {"input": lambda _: "y"}))
    before = [{name: names[name] for name in new if name in names} for names, new in put]
    try:
        for names, new in put:
            names.update(new)
        yield
    finally:
        for (names, new), old in zip(put, before, strict=True):
            for name in new:
                del names[name]
            names.update(old)


def _refuse(question: str) -> NoReturn:
    raise ReadError(f"ogb asks: {question.strip()!r}; remove its folder and fetch or make the data set again")


def _imported(name: str) -> ModuleType:
    """Import a module of ``ogb`` without its request for a newer version."""
    before = {known: sys.modules[known] for known in ("outdated",) if known in sys.modules}
    if "ogb" not in sys.modules:
        sys.modules["outdated"] = None  # type: ignore[assignment]
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra("ogb", "ogb") from None
    finally:
        if sys.modules.get("outdated", before) is None:
            del sys.modules["outdated"]
        sys.modules.update(before)


def _folder(package: ModuleType) -> Path:
    return Path(str(package.__file__)).parent
