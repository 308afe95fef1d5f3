"""The results of a study: scores, learning curves and tables."""

from __future__ import annotations

import csv
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from structpe.errors import ConfigError, MissingExtra, needing
from structpe.objectives import METRICS, Metric
from structpe.system.files import atomic_text, atomic_write, replacing
from structpe.system.printing import say
from structpe.tasks.prediction.study import Key, Published, StudyConfig, by_row
from structpe.tasks.training import folder as folders
from structpe.tasks.training.result import Result, StoredResult

__all__ = [
    "KINDS",
    "SUFFIXES",
    "Difference",
    "LearningCurve",
    "Outcome",
    "Score",
    "TableRow",
    "Write",
    "claim",
    "curve",
    "difference",
    "draw",
    "limits",
    "lines",
    "read_scores",
    "report",
    "rows",
    "scores",
    "standard_errors",
    "table_writer",
    "write_rows",
]


@dataclass(frozen=True)
class Outcome(StoredResult):
    """The result of a run of prediction.

    Attributes:
        metric: name of the official metric.
        valid: its value for the best model on the validation split; None without a validation split, when the last
            model is kept.
        test: its value for the same model on the test split, computed once.
        parameters: number of trained parameters.
        encoding_seconds: seconds to encode all graphs; 0 without encodings.
        training: the result of training.
        versions: versions of the software, the commit and the machine.
        data: name of the data in the benchmark.
        note: a remark of the benchmark on its results.
        others: values of the other metrics of the objective on the test split.
    """

    remedy = "remove the folder, and train again"

    metric: str
    valid: float | None
    test: float
    parameters: int
    encoding_seconds: float
    training: Result
    versions: dict[str, str]
    data: str = ""
    note: str = ""
    others: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        valid = "no validation split" if self.valid is None else f"{self.valid:.4g} on the validation split"
        others = "".join(f", {name} {value:.4g}" for name, value in self.others.items())
        return f"{self.metric} {self.test:.4g}{others} on the test split, {valid}"


@dataclass(frozen=True)
class Score:
    """The official metric of a finished run.

    Attributes:
        row: ``DATA/MODEL/POSITION`` of the study.
        seed: the seed of the run, and the number of its split if there are several.
        metric: name of the metric.
        test, valid: on these splits; None if there is no validation split.
    """

    row: str
    seed: int
    metric: str
    test: float
    valid: float | None


@dataclass(frozen=True)
class Difference:
    """A paired comparison of two rows over their common seeds.

    With d_i the difference of the two test scores of seed i, positive if the first row is better: the mean of d_i, its
    sample deviation, and the two-sided p of Student's t test that the mean is 0 (n - 1 degrees of freedom). The test is
    paired because runs of one seed share the split and the order of batches. The p of three seeds says little: the test
    assumes normal differences, and only large ones have a small p.

    Attributes:
        first, second: the rows.
        metric: name of the metric.
        seeds: n.
        mean, deviation: of d_i.
        p: of the test; 0 or 1 if all d_i are equal.
    """

    first: str
    second: str
    metric: str
    seeds: int
    mean: float
    deviation: float
    p: float

    def __str__(self) -> str:
        name = METRICS[self.metric].name
        if self.mean:
            how = f"is {'better' if self.mean > 0 else 'worse'} than {self.second} by {abs(self.mean):.4g} {name}"
        else:
            how = f"has the mean {name} of {self.second}"
        return f"{self.first} {how} (± {self.deviation:.2g} over {self.seeds} seeds; paired t test, p = {self.p:.2g})"


def scores(study: StudyConfig, keys: Sequence[Key]) -> list[Score]:
    """The scores of all finished runs."""
    found = ((key, Outcome.load(study.folder(key))) for key in keys)
    return [
        Score(str(key).rpartition("/")[0], key.seed, done.metric, done.test, done.valid)
        for key, done in found
        if done is not None
    ]


def difference(known: Sequence[Score], first: str, second: str) -> Difference:
    """Compare two rows on the test split.

    Raises:
        ConfigError: a row has no finished run, the rows have different metrics, or share fewer than two seeds.
    """
    mine, theirs = ({each.seed: each for each in known if each.row == row} for row in (first, second))
    for row, found in ((first, mine), (second, theirs)):
        if not found:
            rows = ", ".join(dict.fromkeys(each.row for each in known)) or "none"
            raise ConfigError(f"there is no finished run of {row}; those with finished runs: {rows}")
    metrics = {each.metric for each in (*mine.values(), *theirs.values())}
    if len(metrics) > 1:
        several = " and ".join(sorted(metrics))
        raise ConfigError(f"{first} and {second} are scored by {several}; give two rows of the same data")
    shared = sorted(mine.keys() & theirs.keys())
    if len(shared) < 2:
        raise ConfigError(
            f"{first} and {second} share {len(shared)} finished seed{'' if len(shared) == 1 else 's'}; "
            f"a paired test needs two, run more"
        )
    (metric,) = metrics
    sign = -1 if METRICS[metric].less_is_better else 1
    differences = [sign * (mine[seed].test - theirs[seed].test) for seed in shared]
    mean, deviation = statistics.fmean(differences), statistics.stdev(differences)
    p = float(stats.ttest_1samp(differences, 0).pvalue) if deviation else float(mean == 0)
    return Difference(first, second, metric, len(shared), mean, deviation, p)


def write_rows(rows: Sequence[Any], cls: type[Any], file: Path) -> None:
    """Write instances of a dataclass as CSV, with a column for each field."""
    names = [field.name for field in fields(cls)]

    def write(hidden: Path) -> None:
        with hidden.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(names)
            writer.writerows([getattr(row, name) for name in names] for row in rows)

    atomic_write(file, write)


def read_scores(file: Path) -> list[Score]:
    """Read ``scores.csv``."""
    with file.open(newline="", encoding="utf-8") as stream:
        return [
            Score(r["row"], int(r["seed"]), r["metric"], float(r["test"]), float(r["valid"]) if r["valid"] else None)
            for r in csv.DictReader(stream)
        ]


Floats: TypeAlias = NDArray[np.float64]

KINDS = ("svg", "png")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31")
"""Colours for colour-blind readers (Okabe and Ito 2008), with a brown instead of their yellow."""
STYLES = ("-", "--", ":", "-.")
INSIDE = 4
"""Largest number of curves for a legend inside the picture."""
BEGINNING = 0.2
"""Fraction of the first steps that is ignored for the limits of the axis."""


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """The validations of a model with a position, as far as all its runs have come.

    Attributes:
        name: names of model and position.
        metric: the official metric.
        steps: (k,) steps of the validations.
        values: (seeds, k) values of the metric.
    """

    name: str
    metric: Metric
    steps: Floats
    values: Floats


def draw(study: StudyConfig, keys: Sequence[Key]) -> list[Path]:
    """Draw ``curves-DATA.svg`` and ``.png`` for each data set with validations, with a line per model and position.

    The line is the mean over seeds, the band the range from the smallest to the largest value.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    made = []
    for data in dict.fromkeys(key.data for key in keys):
        if found := lines(study, [key for key in keys if key.data == data]):
            made += _picture(data, found, Path(study.out))
    return made


def lines(study: StudyConfig, keys: Sequence[Key]) -> list[LearningCurve]:
    """The learning curves of runs, sorted by the last value, the best first; without runs that have no validation."""
    found = []
    for (_, model, position), seeds in by_row(keys).items():
        curves = [each for key in seeds if (each := curve(study.folder(key))) is not None]
        if curves:
            metric, steps, _ = min(curves, key=lambda each: len(each[1]))
            values = np.stack([values[: len(steps)] for _, _, values in curves])
            found.append(LearningCurve(f"{model}, {position}", metric, steps, values))
    return sorted(found, key=lambda line: line.values[:, -1].mean() * (1 if line.metric.less_is_better else -1))


def curve(folder: Path) -> tuple[Metric, Floats, Floats] | None:
    """The official metric of a run, and the steps and values of its validations; None before the first."""
    file = folder / "metrics.csv"
    if not file.exists():
        return None
    wanted = {f"dev_{name}": metric for name, metric in METRICS.items()}
    with file.open(encoding="utf-8", newline="") as opened:
        found = [row for row in csv.DictReader(opened) if row["metric"] in wanted]
    if not found:
        return None
    found = [row for row in found if row["metric"] == found[0]["metric"]]  # the official one comes first
    steps, values = (np.array([float(row[name]) for row in found]) for name in ("step", "value"))
    return wanted[found[0]["metric"]], steps, values


def limits(found: Sequence[LearningCurve]) -> tuple[float, float]:
    """Limits of the axis for all values except those of the beginning, when a model has not learned anything yet."""
    late = [line.values[:, line.steps > BEGINNING * line.steps[-1]].ravel() for line in found]
    values = np.concatenate(late)
    low, high = float(values.min()), float(values.max())
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    return low - room, high + room


def _picture(data: str, found: list[LearningCurve], folder: Path) -> list[Path]:
    with needing("matplotlib", "viz"):
        import matplotlib
        from matplotlib.figure import Figure
    outside = len(found) > INSIDE
    figure = Figure(figsize=(8.5 if outside else 6.5, 4), layout="constrained")
    axes = figure.subplots()
    for number, line in enumerate(found):
        _draw_line(axes, line, COLOURS[number % len(COLOURS)], STYLES[number // len(COLOURS) % len(STYLES)])
    metric = found[0].metric
    better = "less" if metric.less_is_better else "more"
    axes.set(xlabel="step", ylabel=f"{metric.name} on the validation split ({better} is better)", ylim=limits(found))
    axes.set_title(data, loc="left", fontweight="bold")
    axes.margins(x=0.01)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    where: dict[str, Any] = {"loc": "outside right upper"} if outside else {"loc": "best"}
    (figure if outside else axes).legend(fontsize="small", frameon=False, **where)
    files = [folder / f"curves-{data}.{kind}" for kind in KINDS]
    with matplotlib.rc_context({"svg.hashsalt": "structpe"}):  # the same curves give the same file
        for file in files:
            figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
    return files


def _draw_line(axes: Any, line: LearningCurve, colour: str, style: str) -> None:
    mark = "o" if len(line.steps) == 1 else None  # a line of one point would not be seen
    axes.plot(line.steps, line.values.mean(axis=0), style, color=colour, label=line.name, linewidth=1.6, marker=mark)
    if len(line.values) > 1:
        low, high = line.values.min(axis=0), line.values.max(axis=0)
        axes.fill_between(line.steps, low, high, color=colour, alpha=0.15, linewidth=0)


SUFFIXES = (".csv", ".parquet")

Write: TypeAlias = Callable[[Mapping[str, NDArray[Any]]], None]
"""Writes rows, given as columns by name; the names are the same in each call."""


@contextmanager
def table_writer(path: Path | None) -> Iterator[Write]:
    """Write a table atomically, in the format of its suffix; with None, as CSV to standard output.

    Raises:
        ConfigError: the suffix is neither ``.csv`` nor ``.parquet``.
        MissingExtra: pyarrow is not installed, for Parquet.
        OSError: the disk is full, or the folder cannot be written to.
    """
    if path is None:
        yield _csv(sys.stdout)
        return
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"{path} has the suffix {path.suffix!r}; tables are written as {' or '.join(SUFFIXES)}")
    with replacing(path) as hidden:
        if path.suffix == ".csv":
            with hidden.open("w", encoding="utf-8", newline="") as file:
                yield _csv(file)
        else:
            with _parquet(hidden) as write:
                yield write


def _csv(file: TextIO) -> Write:
    writer, begun = csv.writer(file, lineterminator="\n"), False

    def write(columns: Mapping[str, NDArray[Any]]) -> None:
        nonlocal begun
        if not begun:
            writer.writerow(columns)
            begun = True
        # As text: the shortest digits that give back a float32.
        writer.writerows(zip(*(column.astype(str).tolist() for column in columns.values()), strict=True))

    return write


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    with needing("pyarrow", "parquet"):
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    writer: Any = None

    def write(columns: Mapping[str, NDArray[Any]]) -> None:
        nonlocal writer
        table = pyarrow.table({name: _arrow(column) for name, column in columns.items()})
        if writer is None:
            writer = ParquetWriter(path, table.schema)
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _arrow(column: NDArray[Any]) -> Any:
    return column if np.issubdtype(column.dtype, np.number) else column.astype(str).tolist()


@dataclass(frozen=True)
class TableRow:
    """The runs of a model with a position on some data, over all seeds. Times and memory are medians.

    Attributes:
        data, model, position: names of the study.
        metric: name of the official metric.
        seeds: number of finished runs.
        planned: number of all runs.
        test, deviation: mean and sample deviation of the official metric on the test split; None without runs, or with
            one run.
        valid: mean on the validation split.
        parameters: number of parameters.
        encoding_seconds: time to encode all graphs.
        step_ms: time of a training step.
        epochs: epochs of a training; the number of steps, if each takes a whole graph.
        minutes: time of a training, validations included.
        cpu_minutes: CPU time of a training, over all threads.
        peak_mib: peak memory of the process.
        commit, versions, device, day: of the runs; different ones are joined by " and ".
        title: the benchmark's own name, which says if it is not the official one.
        note: a remark that is printed with the table.
        others: further metrics on the test split, in words.
    """

    data: str
    model: str
    position: str
    metric: str = ""
    seeds: int = 0
    planned: int = 0
    test: float | None = None
    deviation: float | None = None
    valid: float | None = None
    parameters: int | None = None
    encoding_seconds: float | None = None
    step_ms: float | None = None
    minutes: float | None = None
    peak_mib: float | None = None
    commit: str = ""
    versions: str = ""
    device: str = ""
    title: str = ""
    note: str = ""
    others: str = ""
    epochs: float | None = None
    cpu_minutes: float | None = None
    day: str = ""


def report(study: StudyConfig, keys: Sequence[Key]) -> str:
    """Write ``table.md``, ``table.csv``, ``scores.csv`` and curves into the study's folder; return the table."""
    table = rows(study, keys)
    folder = Path(study.out)
    claim(study, keys)
    text = markdown(table, study.published)
    atomic_text(folder / "table.md", text)
    write_rows(table, TableRow, folder / "table.csv")
    write_rows(scores(study, keys), Score, folder / "scores.csv")
    try:
        draw(study, keys)
    except MissingExtra as missing:  # the table is complete without curves
        say(f"no learning curves are drawn: {missing}")
    return text


def claim(study: StudyConfig, keys: Sequence[Key]) -> None:
    """Add the files of :func:`report` to the manifest of the study's folder.

    Raises:
        ConfigError: the folder holds other files of these names, which no study has written.
    """
    folder, curves = Path(study.out), [f"curves-{data}.{kind}" for data in study.data for kind in KINDS]
    names = ("table.md", "table.csv", "scores.csv", *curves)
    # A study of an older structpe has no manifest, but it has runs.
    older = folders.manifest_files(folder) is None and any(folders.learned(study.folder(key)) for key in keys)
    folders.claim(folder, names, names if older else None)


def rows(study: StudyConfig, keys: Sequence[Key]) -> list[TableRow]:
    """A row for each combination of data, model and position, finished or not."""
    return [
        _row(names, [done for key in seeds if (done := Outcome.load(study.folder(key))) is not None], len(seeds))
        for names, seeds in by_row(keys).items()
    ]


def _row(names: tuple[str, str, str], done: Sequence[Outcome], planned: int) -> TableRow:
    if not done:
        return TableRow(*names, planned=planned)
    tests, valid = [run.test for run in done], [run.valid for run in done if run.valid is not None]
    return TableRow(
        *names,
        metric=done[0].metric,
        seeds=len(done),
        planned=planned,
        test=statistics.fmean(tests),
        deviation=statistics.stdev(tests) if len(tests) > 1 else None,
        valid=statistics.fmean(valid) if valid else None,
        parameters=done[0].parameters,
        encoding_seconds=statistics.median(run.encoding_seconds for run in done),
        step_ms=1e3 * statistics.median(run.training.step_seconds for run in done),
        minutes=statistics.median(run.training.seconds for run in done) / 60,
        peak_mib=statistics.median(run.training.peak_bytes for run in done) / 2**20,
        commit=_all(done, lambda made: made["commit"] or "unknown"),
        versions=_all(done, lambda made: ", ".join(f"{name} {made[name]}" for name in ("structpe", "torch", "python"))),
        device=_all(done, lambda made: f"{made['device']}, {made['threads']} thread{'s' * (made['threads'] != '1')}"),
        title=done[-1].data,
        note=done[-1].note,
        others=_others(done),
        epochs=statistics.median(run.training.epochs for run in done) or None,
        cpu_minutes=statistics.median(run.training.cpu_seconds for run in done) / 60 or None,
        day=_all(done, lambda made: made["day"]),
    )


def _all(done: Sequence[Outcome], said: Callable[[dict[str, str]], str]) -> str:
    return " and ".join(dict.fromkeys(said(run.versions) for run in done))


COSTS = ("encoding s", "step ms", "minutes", "CPU minutes", "peak MiB")
HEADER = ("model", "position", "seeds", "test", "valid", "parameters", "epochs", *COSTS, "commit")


def markdown(table: Sequence[TableRow], published: Sequence[Published]) -> str:
    """A table for each data set, with the software and the machine.

    Rows of several seeds are ranked, the best first. Rows of one seed say so and are not ranked: they follow in the
    order of the study. Published numbers come last.
    """
    return "\n".join(
        line for data in dict.fromkeys(row.data for row in table) for line in _section(data, table, published)
    )


def _section(data: str, table: Sequence[TableRow], published: Sequence[Published]) -> list[str]:
    mine = [row for row in table if row.data == data]
    done = [row for row in mine if row.seeds]
    sign = 1 if not done or METRICS[done[0].metric].less_is_better else -1
    mine.sort(key=lambda row: (row.seeds < 2, row.seeds < 1, sign * (row.test or 0) if row.seeds > 1 else 0))
    lines = [*_heading(data, done), f"| {' | '.join(HEADER)} |", "|---|---|" + "---:|" * (len(HEADER) - 2)]
    lines += [f"| {' | '.join(_cells(row))} |" for row in mine]
    for theirs in published:
        if theirs.data == data:
            test = _with_deviation(theirs.value, theirs.deviation)
            seeds, other = f" {theirs.seeds}" if theirs.seeds else "", _distance(mine, theirs)
            first = f"| {theirs.name} | {theirs.source} (published{other}) |{seeds} | {test} |"
            lines.append(first + " |" * (len(HEADER) - 4))
    said = [f"{row.model}, {row.position}, on the test split too: {row.others}." for row in done if row.others]
    measured = {f"commit {r.commit or 'unknown'}{r.day and f', {r.day}'}; {r.versions}; {r.device}" for r in done}
    return [*lines, "", *said, *(f"Measured with {each}." for each in sorted(measured)), ""]


def standard_errors(row: TableRow, theirs: Published) -> float | None:
    """(ours - theirs) / sqrt(s1^2 / n1 + s2^2 / n2); None where a deviation or a number of seeds is missing."""
    if row.test is None or row.seeds < 2 or row.deviation is None or theirs.deviation is None or theirs.seeds is None:
        return None
    squared = row.deviation**2 / row.seeds + theirs.deviation**2 / theirs.seeds
    return (row.test - theirs.value) / math.sqrt(squared) if squared else None


def _distance(mine: Sequence[TableRow], theirs: Published) -> str:
    """How far the row is that reproduces a number, in words."""
    for row in mine:
        if [row.model, row.position] == theirs.row and (z := standard_errors(row, theirs)) is not None:
            return f"; {row.model}, {row.position}: z = {z:+.2f}"
    return ""


def _heading(data: str, done: Sequence[TableRow]) -> list[str]:
    """The title of a table, and remarks on its numbers."""
    if not done:
        return [f"### {data}: no run is finished yet", ""]
    metric = METRICS[done[0].metric]
    title = f"{data} ({done[0].title})" if done[0].title not in ("", data) else data
    said = f"{metric.name}, {'less' if metric.less_is_better else 'more'} is better; ± sample deviation over seeds."
    if any(row.seeds == 1 for row in done):
        said += " Rows of one seed are not ranked."
    return [f"### {title}", "", said, *(f"Note: {each}." for each in dict.fromkeys(r.note for r in done) if each), ""]


def _cells(row: TableRow) -> list[str]:
    test = "-" if row.test is None else _with_deviation(row.test, row.deviation)
    numbers = [
        *("-" if value is None else f"{value:{form}}" for value, form in (
            (row.valid, ".4g"), (row.parameters, ","), (row.epochs, ".0f"), (row.encoding_seconds, ".1f"),
            (row.step_ms, ".1f"), (row.minutes, ".1f"), (row.cpu_minutes, ".1f"), (row.peak_mib, ".0f"),
        )),
    ]  # fmt: skip
    seeds = str(row.seeds) if row.seeds == row.planned else f"{row.seeds} of {row.planned}"
    commit = ", ".join(each[:7] for each in row.commit.split(" and ")) or ("unknown" if row.seeds else "-")
    return [row.model, row.position, seeds, f"{test} (one seed)" if row.seeds == 1 else test, *numbers, commit]


def _others(done: Sequence[Outcome]) -> str:
    """Means of further metrics over the runs."""
    metrics = [name for name in done[0].others if name != done[0].metric]
    means = {name: statistics.fmean(run.others[name] for run in done) for name in metrics}
    return ", ".join(f"{METRICS[name].name} {mean:.4g}" for name, mean in means.items())


def _with_deviation(mean: float, deviation: float | None) -> str:
    return f"{mean:.4g}" if deviation is None else f"{mean:.4g} ± {deviation:.2g}"
