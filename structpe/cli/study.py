"""``structpe study``: compare models and positions on benchmarks."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from structpe.cli.base import Command, UsageError, add_only, as_overrides, check_counts, refuse_idle, with_imports
from structpe.errors import StructPEError
from structpe.system.printing import printable

__all__ = ["StudyCommand"]

SHOWN = 3
"""Number of failures that are repeated at the end."""


class StudyCommand(Command, name="study"):
    """Compare models and positions on benchmarks.

    CONFIG is a YAML file with data, models, positions and seeds; every combination is a run. All data are read and
    encoded first, and each row is tried on them: an error names every row that cannot run, and nothing is trained.
    Finished runs are not repeated, interrupted ones resume. At the end, the study's folder has a table of all runs
    (table.md, table.csv), the score of each run (scores.csv), and learning curves. --compare compares two rows by a
    paired test over their common seeds. --KEY VALUE overrides a value of CONFIG, with dots between the levels; a VALUE
    is YAML.
    """

    example = (
        "structpe study examples/study.yaml\n"
        "structpe study examples/study.yaml --table\n"
        "structpe study examples/study.yaml --seeds '[0,1,2]' --jobs 2 --only 'diameters/gine/*'\n"
        "structpe study examples/study.yaml --seeds '[0,1,2]' --compare diameters/gine/none diameters/gine/walks\n"
        "structpe study examples/study.yaml --training.steps 500 --out runs/short --fresh"
    )
    overrides = True

    def arguments(self, parser: ArgumentParser) -> None:
        parser.usage = (
            "structpe study CONFIG [--jobs N] [--threads N] [--only PATTERN ...] [--table | --compare ROW ROW] "
            "[--KEY VALUE ...]"
        )
        parser.add_argument("config", metavar="CONFIG", help="a YAML file")
        parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes: runs, encoding (default: 1)")
        parser.add_argument("--threads", type=int, metavar="N", help="threads of each (default: OMP_NUM_THREADS, or 1)")
        add_only(parser)
        parser.add_argument("--table", action="store_true", help="only write the table of existing results")
        parser.add_argument("--compare", nargs=2, metavar="ROW", help="no run; compare two rows, DATA/MODEL/POSITION")
        parser.add_argument("--fresh", action="store_true", help="repeat finished runs")

    def run(self, given: Namespace) -> None:
        from structpe.tasks.prediction.report import difference, report, scores
        from structpe.tasks.prediction.run_all import matching_configs, run_all
        from structpe.tasks.prediction.study import load_study

        if given.table and given.compare:
            raise UsageError("--table and --compare both show existing results; give one of them")
        if given.table or given.compare:
            refuse_idle(given, "without a run: --table and --compare train nothing", "--jobs", "--threads", "--fresh")
        check_counts(jobs=given.jobs, threads=given.threads)
        study = with_imports(load_study(given.config, as_overrides(given.overrides)), given.imports)
        keys = study.keys(given.only)
        if given.compare:
            print(printable(str(difference(scores(study, keys), *given.compare))))
            return
        if given.table:
            matching_configs(study, keys)
            failed = []
        else:
            failed = run_all(study, keys, given.jobs, given.threads, given.fresh)
        print(printable(report(study, keys)))
        if failed:
            causes = "; ".join(f"{each.key}: {each.message}" for each in failed[:SHOWN])
            more = f"; and {len(failed) - SHOWN} more, see above" if len(failed) > SHOWN else ""
            raise StructPEError(f"{len(failed)} of {len(keys)} runs failed: {causes}{more}")
