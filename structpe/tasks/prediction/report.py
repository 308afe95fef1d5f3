"""The tables and pictures of a study."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from structpe.errors import MissingExtra
from structpe.files import atomic_text, atomic_write
from structpe.objectives import METRICS
from structpe.tasks.prediction.curves import KINDS, draw
from structpe.tasks.prediction.outcome import Outcome
from structpe.tasks.prediction.scores import scores, write
from structpe.tasks.prediction.study import Key, Published, StudyConfig, by_row
from structpe.tasks.training import folder as folders
from structpe.tasks.training.progress import say

__all__ = ["Row", "claim", "report", "rows"]


@dataclass(frozen=True)
class Row:
    """The runs of a model with a position on some data, seeds together. Times and memory are medians.

    Attributes:
        data, model, position: names of the study.
        metric: name of the official metric.
        seeds: how many runs are finished,
        planned: of so many.
        test, deviation: mean and sample deviation of the official metric on the test split; None without runs, or with
            one run.
        valid: mean on the validation split.
        parameters: of the model.
        encoding_seconds: to encode all graphs.
        step_ms: of a training step.
        epochs: of a training; as many as its steps where each has all of a graph.
        minutes: of a training, validations included.
        cpu_minutes: of the CPU, over all threads.
        peak_mib: most memory of the process.
        commit, versions, device, day: of its runs; where they differ, with " and " between them.
        title: what the benchmark calls itself; one that is not the official one says so here.
        note: a remark that the table prints with the numbers.
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
    """Write ``table.md``, ``table.csv``, ``scores.csv`` and curves into the study's folder; the table as Markdown."""
    table = rows(study, keys)
    folder = Path(study.out)
    claim(study, keys)
    text = markdown(table, study.published)
    atomic_text(folder / "table.md", text)
    atomic_write(folder / "table.csv", lambda hidden: _write(table, hidden))
    write(scores(study, keys), folder / "scores.csv")
    try:
        draw(study, keys)
    except MissingExtra as missing:  # the table says all that the curves do
        say(f"no learning curves are drawn: {missing}")
    return text


def claim(study: StudyConfig, keys: Sequence[Key]) -> None:
    """Enter what :func:`report` writes in the manifest of the study's folder.

    Raises:
        ConfigError: the folder holds files of these names that no study has written.
    """
    folder, curves = Path(study.out), [f"curves-{data}.{kind}" for data in study.data for kind in KINDS]
    names = ("table.md", "table.csv", "scores.csv", *curves)
    # A study of an older structpe, which wrote no manifest, is known by its runs.
    older = folders.listing(folder) is None and any(folders.learned(study.folder(key)) for key in keys)
    folders.claim(folder, names, names if older else None)


def rows(study: StudyConfig, keys: Sequence[Key]) -> list[Row]:
    """A row for each model with each position on each data, finished or not."""
    return [
        _row(names, [done for key in seeds if (done := Outcome.load(study.folder(key))) is not None], len(seeds))
        for names, seeds in by_row(keys).items()
    ]


def _row(names: tuple[str, str, str], done: Sequence[Outcome], planned: int) -> Row:
    if not done:
        return Row(*names, planned=planned)
    tests, valid = [run.test for run in done], [run.valid for run in done if run.valid is not None]
    return Row(
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


def markdown(table: Sequence[Row], published: Sequence[Published]) -> str:
    """A table per data set, and what it was measured with.

    Rows of several seeds are ranked, the best first. A row of one seed says so and is ranked with nobody: it stands
    below them, in the order of the study. Published numbers come last.
    """
    return "\n".join(
        line for data in dict.fromkeys(row.data for row in table) for line in _section(data, table, published)
    )


def _section(data: str, table: Sequence[Row], published: Sequence[Published]) -> list[str]:
    mine = [row for row in table if row.data == data]
    done = [row for row in mine if row.seeds]
    sign = 1 if not done or METRICS[done[0].metric].less_is_better else -1
    mine.sort(key=lambda row: (row.seeds < 2, row.seeds < 1, sign * (row.test or 0) if row.seeds > 1 else 0))
    lines = [*_heading(data, done), f"| {' | '.join(HEADER)} |", "|---|---|" + "---:|" * (len(HEADER) - 2)]
    lines += [f"| {' | '.join(_cells(row))} |" for row in mine]
    for theirs in published:
        if theirs.data == data:
            test = _with_deviation(theirs.value, theirs.deviation)
            lines.append(f"| {theirs.name} | {theirs.source} (published) | | {test} |" + " |" * (len(HEADER) - 4))
    said = [f"{row.model}, {row.position}, on the test split too: {row.others}." for row in done if row.others]
    measured = {f"commit {r.commit or 'unknown'}{r.day and f', {r.day}'}; {r.versions}; {r.device}" for r in done}
    return [*lines, "", *said, *(f"Measured with {each}." for each in sorted(measured)), ""]


def _heading(data: str, done: Sequence[Row]) -> list[str]:
    """The title of the table, and remarks on its numbers."""
    if not done:
        return [f"### {data}: no run is finished yet", ""]
    metric = METRICS[done[0].metric]
    title = f"{data} ({done[0].title})" if done[0].title not in ("", data) else data
    said = f"{metric.name}, {'less' if metric.less_is_better else 'more'} is better; ± sample deviation over seeds."
    if any(row.seeds == 1 for row in done):
        said += " Rows of one seed are not ranked."
    return [f"### {title}", "", said, *(f"Note: {each}." for each in dict.fromkeys(r.note for r in done) if each), ""]


def _cells(row: Row) -> list[str]:
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


def _write(table: Sequence[Row], path: Path) -> None:
    names = [field.name for field in fields(Row)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([getattr(row, name) for name in names] for row in table)
