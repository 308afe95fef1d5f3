"""The Open Graph Benchmark (Hu et al. 2020), read by the loaders of ``ogb`` itself.

``ogb`` 1.3.6 reads its processed data sets and splits with plain ``torch.load``. Since torch 2.6 this refuses pickles
of NumPy arrays, and the safe reader of torch does not support protocol 4, in which ``ogb`` writes processed data sets.
Reading them as full pickles could run any code. Here a file is read in one of two ways:

- A file without tensors by an unpickler that knows only the names in :data:`ALLOWED`.
- A file with tensors (from the loaders for PyTorch Geometric) by the safe reader of torch, with the same stand-ins and
  the four classes that such files need.

``ogb`` 1.3.6 does not run with current versions of torch, unpickles any file, asks questions on standard input, prints,
and uses the network when it is imported. :func:`safe_loaders` prevents all this while a data set is read. It changes
the modules of ``ogb`` only, not torch.
"""

from __future__ import annotations

import importlib
import pickle
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from structpe.data.features import Categories, Features, Numbers
from structpe.datasets.archives import check_zip
from structpe.datasets.arrays import needed
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.pickles import Array, Empty, Function, Refused, Type, Unpickler, check_pickle
from structpe.errors import ConfigError, MissingExtra, ReadError, StructPEError, needing, reason_of
from structpe.formats.smiles import ATOM_CATEGORIES, BOND_CATEGORIES, SYMBOLS
from structpe.objectives import Objective
from structpe.objectives.classification import Binary, Multiclass, Multilabel
from structpe.objectives.metrics import END, UNKNOWN
from structpe.objectives.regression import Regression
from structpe.objectives.sequence import Sequences
from structpe.structure import Structure
from structpe.system.files import finish, followed, lock

__all__ = [
    "PUBLISHED",
    "Kind",
    "Raw",
    "benchmark_of",
    "load",
    "numbered",
    "official",
    "ogb_graph",
    "ogb_node",
    "ogbg_code2",
    "ogbg_ppa",
    "own",
    "safe_loaders",
    "save",
    "structures",
]

AGAIN = "it was not run; delete the file and fetch or make it again (files under 'processed' are made from 'raw')"


def load(file: str | Path, *_: object) -> Any:
    """Read a file of ``ogb``; replaces ``torch.load``, whose further arguments are ignored.

    Raises:
        ReadError: the file is missing or damaged, is not a file of torch, or names something that is not allowed.
    """
    file = Path(file)
    try:
        with zipfile.ZipFile(file) as archive:
            check_zip(archive, file.stat().st_size)
            names = archive.namelist()
            if any(re.fullmatch(r"[^/]+/data/\d+", name) for name in names):
                return _tensors(file, archive)
            return Unpickler(_pickled(archive), ALLOWED, "file of OGB").load()
    except FileNotFoundError:
        raise ReadError("there is no such file; fetch the whole data set").at(file) from None
    except Refused as refused:
        raise ReadError(f"{refused}; {AGAIN}").at(file) from None
    except (ReadError, MemoryError) as error:
        raise error.at(file) if isinstance(error, ReadError) else error from None
    except Exception as error:  # a damaged pickle may raise anything
        what = f"not a file of OGB ({type(error).__name__}: {reason_of(error)})"
        raise ReadError(f"{what}; {AGAIN}").at(file) from None


def save(content: object, file: str | Path, **options: Any) -> None:
    """Like ``torch.save``, but atomic: several processes may write the same file at once."""
    file = followed(Path(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    with lock(file, lambda: None) as work:
        with (work / "new").open("wb") as draft:  # torch.save to a path gives no reason if it fails
            torch.save(content, draft, **options)
        finish(work / "new", file, work)


class _Scalar(Function):
    def __new__(cls, kind: Type, content: bytes) -> np.generic:  # type: ignore[misc]
        (number,) = np.frombuffer(content, kind.dtype)
        return number  # type: ignore[no-any-return]


class _Bytes(Function):
    def __new__(cls, text: str, codec: str) -> bytes:  # type: ignore[misc]
        if codec != "latin1":
            raise Refused(f"the file holds bytes as {codec!r}")
        return text.encode("latin-1")


class _NoBytes(Function):
    def __new__(cls) -> bytes:  # type: ignore[misc]
        return b""


ALLOWED: dict[tuple[str, str], type] = {
    ("numpy", "dtype"): Type,
    ("numpy", "ndarray"): Array,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): Empty for core in ("_core", "core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _Scalar for core in ("_core", "core")},
    ("_codecs", "encode"): _Bytes,
    **{(builtins, "bytes"): _NoBytes for builtins in ("builtins", "__builtin__")},
}
"""(module, name) -> stand-in for each name that a file may use; ``core`` is the name of ``_core`` in NumPy 1.

The last two are for bytes in protocol 2: as text, or ``bytes()`` if empty.
"""


def _pickled(archive: zipfile.ZipFile) -> bytes:
    """Read the pickle in a file of torch."""
    (content,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+/data\.pkl", name))
    return archive.read(content)


def _tensors(file: Path, archive: zipfile.ZipFile) -> Any:
    with needing("torch_geometric", "ogb"):
        from torch_geometric.data.data import Data, DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import GlobalStorage

    check_pickle(_pickled(archive))
    known = [(stand_in, f"{module}.{name}") for (module, name), stand_in in ALLOWED.items()]
    with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, *known]):
        try:
            return torch.load(file, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            named = re.search(r"GLOBAL (\S+)", str(error))
            what = f"names {named[1]}, which no file of OGB needs" if named else "is not a safe file of tensors"
            raise ReadError(f"the file {what}; {AGAIN}") from None


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

    master = pandas.read_csv(Path(str(package.__file__)).parent / "master.csv", index_col=0, keep_default_na=False)
    meta = {key: master[name][key] for key in master.index}
    place = folder / name.replace("-", "_")
    if not _there(place, meta):
        what = "there is no such folder" if not place.exists() else "it holds neither raw/edge.csv.gz nor raw/data.npz"
        if not download:
            raise ReadError(f"{what}; give download=True, or {_by_hand(place, meta)}").at(place)
    elif not (place / f"RELEASE_v{meta['version']}.txt").is_file():
        wrong = f"this is not version {meta['version']} of {name} (no file RELEASE_v{meta['version']}.txt)"
        raise ReadError(f"{wrong}; {_by_hand(place, meta)}").at(place)
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
        raise ConfigError("the graph has nodes of several types; give a homogeneous one").at(folder)
    labels = place / "raw" / f"{kind}-label.npz"
    if not _there(place, meta) or not labels.is_file():
        wrong = f"raw/data.npz or raw/{labels.name} is missing; unpack {place.name}.zip into this folder"
        raise ReadError(f"{wrong}, and check that it is a data set for the prediction of {kind}s").at(place)
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
    renamed = f"rename the unpacked folder {meta['download_name']!r} to {place.name!r}"
    return f"fetch {meta['url']}, unpack it in {place.parent}, and {renamed}"


@contextmanager
def safe_loaders() -> Iterator[None]:
    """Context in which the loaders of ``ogb`` (its own and those for PyTorch Geometric) run nothing that a file names.

    Files are read by :func:`load`, and written atomically. A question is an error, except whether to download more than
    a gigabyte, which ``download=True`` has answered. Only the progress of a download is printed.
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


AnyArray = NDArray[Any]
Labels = Callable[[AnyArray | None, int], tuple[str, ...]]
"""(node features, number of nodes) -> labels of the nodes."""
Relations = Callable[[AnyArray | None], tuple[str, ...]]
"""Edge features -> labels of the edges, or an empty tuple."""


def numbered(x: AnyArray | None, size: int) -> tuple[str, ...]:
    """Label each node by its first category; without categories, all nodes have the same label."""
    return ("node",) * size if x is None or x.dtype.kind == "f" else tuple(map(str, x[:, 0].tolist()))


def benchmark_of(
    level: Kind,
    raw: Raw,
    labels: Labels = numbered,
    relations: Relations = lambda _: (),
    atoms: tuple[int, ...] | None = None,
    bonds: tuple[int, ...] | None = None,
) -> Benchmark:
    """Make a benchmark of a data set of OGB.

    Args:
        level: level of the predictions.
        raw: the data set.
        labels: labels of nodes.
        relations: labels of edges.
        atoms: numbers of categories of nodes; None counts them.
        bonds: numbers of categories of edges; None counts them.

    Raises:
        ConfigError: the metric is unknown, or there are several tasks with classes.
        ReadError: a graph is damaged, or the labels do not fit the metric.
    """
    (objective, targets), graphs = _objective_and_targets(level, raw), structures(raw, labels, relations)
    return Benchmark(
        name=raw.name,
        graphs=graphs,
        targets=targets,
        splits=(raw.split,),
        nodes=_features(graphs, "x", atoms),
        edges=_features(graphs, "edge_x", bonds),
        objective=objective,
    )


def _objective_and_targets(level: Kind, raw: Raw) -> tuple[Objective, AnyArray]:
    """The objective, and the targets in its form."""
    labels = np.asarray(raw.labels)
    if labels.ndim != 2 or labels.dtype.kind not in "biuf":
        raise ReadError(f"the labels have shape {labels.shape} and dtype {labels.dtype}; give numbers, (items, tasks)")
    metric, tasks, classes = (raw.meta[key] for key in ("eval metric", "num tasks", "num classes"))
    if metric not in METRICS:
        raise ConfigError(f"there is no metric {metric!r} of OGB here; known: {', '.join(METRICS)}").at(raw.name)
    objective, name = METRICS[metric]
    known = labels[~np.isnan(labels)] if labels.dtype.kind == "f" else labels
    if objective is Multiclass:
        if int(tasks) != 1:
            raise ConfigError(f"{tasks} tasks with classes are not supported; one is").at(raw.name)
        if (known != np.floor(known)).any():
            wrong = "the classes are not all whole numbers; give 0, 1, ..., or NaN if unknown"
            raise ReadError(wrong).at(raw.name)
        return objective(level, int(classes), name), np.where(np.isnan(labels), -1, labels).astype(np.int64)[:, 0]
    if objective is Multilabel and not np.isin(known, (0, 1)).all():
        raise ReadError(f"the labels are from {known.min()} to {known.max()}; 0, 1 or NaN are needed").at(raw.name)
    objective = Binary if objective is Multilabel and int(tasks) == 1 else objective
    return objective(level, int(tasks), name), labels.astype(np.float32)


METRICS: dict[str, tuple[type[Objective], str]] = {
    "acc": (Multiclass, "accuracy"),
    "rocauc": (Multilabel, "rocauc"),
    "ap": (Multilabel, "ap"),
    "rmse": (Regression, "rmse"),
    "mae": (Regression, "mae"),
}
"""OGB's name of a metric -> class of the objective, our name of the metric."""


def structures(raw: Raw, labels: Labels, relations: Relations) -> list[Structure]:
    """Convert the graphs, with features ``x`` and ``edge_x`` if they have them.

    A data set with all edges in both directions, with equal features, is undirected: each edge is stored once.
    """
    graphs = [_checked(graph, f"{raw.name}:{number}") for number, graph in enumerate(raw.graphs)]
    if raw.meta["add_inverse_edge"] == "True":  # by ogb: edge 2k + 1 is the reverse of edge 2k
        once: Sequence[Any] | None = [slice(None, None, 2)] * len(graphs)
    else:
        once = _first_ways(graphs)
    return [
        _structure(graph, once is None, keep, labels, relations, f"{raw.name}:{number}")
        for number, (graph, keep) in enumerate(zip(graphs, once or [slice(None)] * len(graphs), strict=True))
    ]


def _features(graphs: Sequence[Structure], key: Literal["x", "edge_x"], sizes: tuple[int, ...] | None) -> Features:
    """Describe features: numbers, or categories with the numbers in ``sizes`` or those that occur."""
    values = [graph.features[key] for graph in graphs if key in graph.features]
    if not values:
        return None
    if sizes is not None:
        return Categories(sizes)
    if values[0].dtype.kind == "f":
        return Numbers(values[0].shape[1])
    return Categories(tuple(int(size) + 1 for size in np.max([v.max(axis=0) for v in values if len(v)], axis=0)))


def _checked(graph: Any, name: str) -> Mapping[str, Any]:
    edges = graph.get("edge_index") if isinstance(graph, dict) else None
    if not isinstance(edges, np.ndarray) or edges.ndim != 2 or len(edges) != 2:
        raise ReadError("it is not a graph: there is no edge_index of shape (2, e); make the data set again").at(name)
    if not isinstance(graph.get("num_nodes"), (int, np.integer)):
        raise ReadError("it has no whole number num_nodes; make the data set again").at(name)
    for key in ("node_feat", "edge_feat"):
        if graph.get(key) is not None and np.ndim(graph[key]) != 2:
            raise ReadError(f"its {key} has shape {np.shape(graph[key])}; (rows, columns) is needed").at(name)
    return {key: np.asarray(value) if isinstance(value, np.ndarray) else value for key, value in graph.items()}


def _structure(
    graph: Mapping[str, Any], directed: bool, keep: Any, labels: Labels, relations: Relations, name: str
) -> Structure:
    x, edge_x, size = graph.get("node_feat"), graph.get("edge_feat"), int(graph["num_nodes"])
    edge_x = None if edge_x is None else edge_x[keep]
    features = {key: value for key, value in (("x", x), ("edge_x", edge_x)) if value is not None}
    ends = graph["edge_index"].T[keep]
    return Structure(labels(x, size), ends, relations(edge_x), directed=directed, features=features, name=name)


def _first_ways(graphs: Sequence[Mapping[str, Any]]) -> list[NDArray[np.bool_]] | None:
    """Masks of the edges to keep of each graph; None if an edge has no reverse."""
    sizes, counts = [int(graph["num_nodes"]) for graph in graphs], [graph["edge_index"].shape[1] for graph in graphs]
    first = np.repeat(np.cumsum([0, *sizes[:-1]]), counts)  # number of the first node of each graph
    source, target = np.concatenate([graph["edge_index"] for graph in graphs], axis=1) + first
    rows = [graph["edge_feat"] for graph in graphs if graph.get("edge_feat") is not None]
    columns = np.concatenate(rows).T if rows else np.zeros((0, len(source)))
    there, back = np.lexsort((*columns, target, source)), np.lexsort((*columns, source, target))
    ends = np.array_equal(source[there], target[back]) and np.array_equal(target[there], source[back])
    if not ends or not all(np.array_equal(column[there], column[back]) for column in columns):
        return None
    return np.split(source <= target, np.cumsum(counts)[:-1])


LENGTH, DEEPEST = 5, 20
RELATIONS = ("child", "next")


@benchmark("ogbg-code2")
def ogbg_code2(folder: Path, words: int = 5000, next_tokens: bool = False, download: bool = False) -> Benchmark:
    """ogbg-code2: the words of a function's name, up to 5, from its syntax tree; split by project.

    Node features are type, attribute and depth (20 means 20 or more). The vocabulary has the most frequent ``words`` of
    the names of training functions, an end of the name and an unknown word. The metric is F1 against the whole name;
    words outside the vocabulary count as missed.

    ``next_tokens`` adds an edge from each node with a token to the next one, as OGB's baselines do. The graphs are then
    not trees, and ``edge_x`` distinguishes the two kinds of edges.

    Files: ``ogbg_code2/raw``, ``split`` and ``mapping`` as OGB provides them; ``download`` lets ``ogb`` fetch them.
    """
    if words < 1:
        raise ConfigError(f"the vocabulary has {words} words; give one at least")
    raw = official("graph", "ogbg-code2", folder, download)
    types, attributes = _column(raw, "type"), _column(raw, "attr")
    raw = replace(raw, graphs=[_with_depth(graph, f"{raw.name}:{i}") for i, graph in enumerate(raw.graphs)])
    trees = structures(raw, lambda x, _: _type_names(types, x), lambda _: ())
    names = [list(map(str, name)) for name in raw.labels]
    vocabulary = Counter(word for number in raw.split.train for word in names[number]).most_common(words)
    places = {word: place for place, (word, _) in enumerate(vocabulary, max(END, UNKNOWN) + 1)}
    return Benchmark(
        name=raw.name,
        graphs=[_tree(tree, graph, next_tokens) for tree, graph in zip(trees, raw.graphs, strict=True)],
        targets=_token_targets(names, places),
        splits=(raw.split,),
        nodes=Categories((len(types), len(attributes), DEEPEST + 1)),
        edges=Categories((len(RELATIONS),)) if next_tokens else None,
        objective=Sequences("graph", len(places) + 2, "f1", LENGTH),
    )


def _with_depth(graph: Mapping[str, Any], name: str) -> dict[str, Any]:
    lacking = [key for key in ("node_feat", "node_depth", "node_dfs_order", "node_is_attributed") if key not in graph]
    if lacking:
        raise ReadError(f"the tree has no {lacking[0]}; fetch or make the data set again").at(name)
    depth = np.minimum(graph["node_depth"], DEEPEST)
    return {**graph, "node_feat": np.concatenate([graph["node_feat"], depth], axis=1)}


def _tree(tree: Structure, graph: Mapping[str, Any], next_tokens: bool) -> Structure:
    """Add the root, the reading order and, with ``next_tokens``, edges between tokens."""
    reading = np.argsort(np.asarray(graph["node_dfs_order"])[:, 0], kind="stable")
    root = int(np.argmin(graph["node_depth"]))
    edges, relations, features = tree.edges, (RELATIONS[0],) * len(tree.edges), dict(tree.features)
    if next_tokens:
        tokens = reading[np.asarray(graph["node_is_attributed"])[reading, 0] == 1]
        edges = np.concatenate([edges, np.stack([tokens[:-1], tokens[1:]], axis=1)])
        relations += (RELATIONS[1],) * (len(edges) - len(relations))
        features["edge_x"] = (np.arange(len(edges)) >= len(tree.edges)).astype(np.int64)[:, None]
    return replace(
        tree, edges=edges, relations=relations, features=features, root=root, order=np.argsort(reading, kind="stable")
    )


def _token_targets(names: Sequence[Sequence[str]], places: Mapping[str, int]) -> NDArray[np.int64]:
    """The learned words of each name, and the words that the metric ``f1`` needs: (g, 5 + m)."""
    most = max(len(set(name)) for name in names)
    targets = np.full((len(names), LENGTH + most), -1)
    targets[:, :LENGTH] = END
    for row, name in zip(targets, names, strict=True):
        learned = [places.get(word, UNKNOWN) for word in name[:LENGTH]]
        wanted = [places.get(word, -2 - number) for number, word in enumerate(dict.fromkeys(name))]
        row[: len(learned)] = learned
        row[LENGTH : LENGTH + len(wanted)] = wanted
    return targets


def _column(raw: Raw, name: str) -> tuple[str, ...]:
    """Read the names of types or attributes, in the order of their numbers."""
    import pandas

    file = needed(raw.folder / "mapping" / f"{name}idx2{name}.csv.gz")
    try:
        return tuple(pandas.read_csv(file, keep_default_na=False)[name].astype(str))
    except (KeyError, ValueError, OSError, EOFError, zlib.error) as error:
        raise ReadError(f"no table with a column {name!r} ({reason_of(error)}); fetch it again").at(file) from None


def _type_names(types: Sequence[str], x: NDArray[Any] | None) -> tuple[str, ...]:
    if x is None or x[:, 0].max() >= len(types):
        raise ReadError(f"a node has a type beyond the {len(types)} of mapping/typeidx2type.csv.gz; fetch it again")
    return tuple(types[number] for number in x[:, 0].tolist())


MOLECULES = (
    *("ogbg-molbace", "ogbg-molbbbp", "ogbg-molclintox", "ogbg-molmuv", "ogbg-molpcba", "ogbg-molsider"),
    *("ogbg-moltox21", "ogbg-moltoxcast", "ogbg-molhiv", "ogbg-molesol", "ogbg-molfreesolv", "ogbg-mollipo"),
    "ogbg-molchembl",
)
BONDS = ("single", "double", "triple", "aromatic", "other")


def molecules(name: str) -> Callable[..., Benchmark]:
    """Make the loader of one of :data:`MOLECULES`."""

    def load(folder: Path, download: bool = False) -> Benchmark:
        raw = official("graph", name, folder, download)
        return benchmark_of("graph", raw, _symbols, _bonds, ATOM_CATEGORIES, BOND_CATEGORIES)

    load.__doc__ = f"""{name}: molecules with OGB's features of atoms and bonds, scaffold split.

    Files: ``{name.replace("-", "_")}/raw`` and ``split`` as OGB provides them; ``download`` lets ``ogb`` fetch them.
    """
    return load


for _name in MOLECULES:
    benchmark(_name)(molecules(_name))


@benchmark("ogbg-ppa")
def ogbg_ppa(folder: Path, download: bool = False) -> Benchmark:
    """ogbg-ppa: the group of species, of 37, of a neighbourhood of proteins; associations of 7 numbers each.

    Files: ``ogbg_ppa/raw`` and ``split`` as OGB provides them; ``download`` lets ``ogb`` fetch them (2.8 GB).
    """
    return benchmark_of("graph", official("graph", "ogbg-ppa", folder, download))


@benchmark("ogb-graph")
def ogb_graph(folder: Path) -> Benchmark:
    """Your own data set of graphs, as written by OGB's ``DatasetSaver``.

    Files: ``meta_dict.pt``, and the folder (or the unpacked archive) of the data in the same folder.
    """
    return benchmark_of("graph", own("graph", folder))


def _symbols(x: NDArray[Any] | None, size: int) -> tuple[str, ...]:
    return numbered(x, size) if x is None else _named(SYMBOLS, x)


def _bonds(edge_x: NDArray[Any] | None) -> tuple[str, ...]:
    return () if edge_x is None else _named(BONDS, edge_x)


def _named(names: tuple[str, ...], features: NDArray[Any]) -> tuple[str, ...]:
    # A category out of range gets the last name here, and an error when the benchmark is checked.
    return tuple(names[number] for number in features[:, 0].astype(np.int64).clip(0, len(names) - 1).tolist())


PUBLISHED = {
    "ogbn-arxiv": "the subject, of 40, of 169,343 papers; a directed edge for each citation, split by year",
    "ogbn-products": "the category, of 47, of 2.4 million products; edges join those bought together; split by sales",
    "ogbn-proteins": "112 functions of 132,534 proteins; 40 million associations of 8 numbers each; split by species",
}


def published(name: str) -> Callable[..., Benchmark]:
    """Make the loader of one of :data:`PUBLISHED`."""

    def load(folder: Path, download: bool = False) -> Benchmark:
        return benchmark_of("node", official("node", name, folder, download))

    place = name.replace("-", "_")
    load.__doc__ = f"""{name}: {PUBLISHED[name]}.

    Files: ``{place}/raw`` and ``split`` as OGB provides them; ``download`` lets ``ogb`` fetch them.
    """
    return load


for _name in PUBLISHED:
    benchmark(_name)(published(_name))


@benchmark("ogb-node")
def ogb_node(folder: Path) -> Benchmark:
    """Your own graph for node prediction, as written by OGB's ``DatasetSaver``.

    Files: ``meta_dict.pt``, and the folder (or the unpacked archive) of the data in the same folder.
    """
    return benchmark_of("node", own("node", folder))
