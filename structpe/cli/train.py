"""``structpe train``: train a model from a configuration."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from structpe.cli._inputs import add_reading, parse_options
from structpe.cli.base import Command, UsageError, as_overrides, with_imports

__all__ = ["TrainCommand"]


class TrainCommand(Command, name="train"):
    """Train a model: from structures to texts, for prediction, or a parser.

    CONFIG is a YAML file. Its key ``task`` says what is trained: graph-to-text, prediction, pretrained-text or parser;
    the first three may leave it out where the other keys say it. --KEY VALUE overrides a value, with dots between the
    levels; a VALUE is YAML. After an interruption, the same command resumes.
    """

    example = (
        "structpe train examples/amr.yaml\n"
        "structpe train examples/amr.yaml --model.width 128 --training.seed 2 --out runs/wide\n"
        "structpe train examples/amr.yaml --training.hardware.jobs 4  # processes that encode the graphs\n"
        "structpe train examples/facts.yaml --data.train mine.tsv --data.dev null --data.test null "
        "--data.options.text Sentence --out runs/mine\n"
        "structpe train examples/kg.yaml --reader webnlg --option comment=good --on-error skip --out runs/good"
    )
    overrides = True

    def arguments(self, parser: ArgumentParser) -> None:
        parser.usage = (
            "structpe train CONFIG [--KEY VALUE ...] [--reader NAME] [--option KEY=VALUE ...] "
            "[--on-error {raise,skip}] [--fresh]"
        )
        parser.add_argument("config", metavar="CONFIG", help="a YAML file")
        parser.add_argument("--fresh", action="store_true", help="remove an earlier run in the same folder first")
        add_reading(parser, "as --data.reader", "option of the reader, as --data.options.KEY VALUE")

    def run(self, given: Namespace) -> None:
        from structpe.tasks.runs import load_config, train

        overrides, of_data = as_overrides(given.overrides), _of_data(given)
        keys = {each.partition("=")[0] for each in overrides}
        if both := [key for key in (each.partition("=")[0] for each in of_data) if key in keys]:
            raise UsageError(f"{both[0]} is given twice, by --{both[0]} and by an option of reading; give it once")
        config = load_config(given.config, [*overrides, *of_data])
        train(with_imports(config, given.imports), fresh=given.fresh)


def _of_data(given: Namespace) -> list[str]:
    """The options of reading, as overrides of the configuration."""
    parse_options(given.options)  # raises an error for what is not KEY=VALUE
    pairs = [option.partition("=") for option in given.options]
    named = {"reader": given.reader, "on_error": given.on_error}
    return [
        *(f"data.{key}={value}" for key, value in named.items() if value is not None),
        *(f"data.options.{key.replace('-', '_')}={value}" for key, _, value in pairs),
    ]
