"""No option is ignored in silence: what cannot act beside others is refused, before anything is read."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser

from structpe.cli import COMMANDS
from tests.cli.running import complaint
from tests.datasets import SAMPLES
from tests.together import together

ACTS: dict[str, str] = {
    "app": "--port --host --no-browser",
    "cite": "",
    "convert": "--formats --writer --reader --option --on-error",
    "data": "",
    "demo": "--steps --out",
    "encodings": "--structure --per --sort --json",
    "encode": "--encoding --out --graph --scheduler --reader --option --on-error",
    "evaluate": "--reader --option --on-error --device --beam --longest --json",
    "explain": "",
    "figure": "--position --checkpoint --file --out",
    "generate": "--reader --option --on-error --device --beam --longest --json --out",
    "parse": "--out",
    "positions": "--width --heads --layers --json --sort --structure --injection --reference --learnable "
    "--no-learnable --recurring --no-recurring --unbound --no-unbound --decodes --no-decodes",
    "predict": "--reader --option --on-error --device --out",
    "samples": "",
    "serve": "--port --host --token-file --parser --device --body --items --nodes --queue --seconds --batch --wait",
    "show": "--encoding --position --checkpoint --out --index --reader --option --on-error --quantity",
    "study": "--only --table --compare",
    "train": "--fresh --reader --option --on-error",
}
"""The options that act beside all others, or are refused by what the others give, such as two models."""

TREE = shlex.quote(str(SAMPLES / "trees_sample" / "sample.conllu"))
MODEL = "--position t5"
SIZES = ("--width 8", "--heads 2", "--layers 2")
READING = ("--reader amr", "--option a=1", "--on-error skip")
IDLE: dict[str, list[tuple[str, str, str]]] = {
    "app": [(option, "", "is an option of reading, and no file is given") for option in READING],
    "data": [
        ("--kind amr", "show cora", "belongs to list"),
        ("--json", "get cora", "belongs to list and show"),
        ("--to a", "show cora", "belongs to list and get and verify"),
        ("--to a", "list --json", "has no effect with --json, which prints everything; leave it out"),
        ("--to a", "verify cora a", "has no effect with FOLDER; leave it out"),
        ("--from a", "show cora", "belongs to get"),
        ("--file a", "list", "belongs to get and verify"),
        ("--all", "list", "belongs to show and get and verify"),
        ("--all", "show cora --json", "has no effect with --json, which prints everything"),
        ("--read", "get cora", "belongs to verify"),
    ],
    "encode": [
        ("--jobs 2", f"{TREE} --encoding depth --out o --scheduler tcp://a:1", "has no effect with --scheduler, whose"),
    ],
    "explain": [("--only 'a/*'", "examples/amr.yaml", "is the configuration of one training, and 'a/*' chooses runs")],
    "figure": [
        ("--length 9", f"rank {MODEL} --file {TREE}", "has no effect with --file"),
        ("--index 1", f"rank {MODEL}", "has no effect without --file"),
        *(
            ("--content", f"{name} {MODEL}", "which is of positions only")
            for name in ("pattern", "segments", "similarity")
        ),
        ("--content", f"similarity --checkpoint a --file {TREE}", "which is of positions only"),
        *(
            (option, f"rank --checkpoint a --file {TREE}", "has no effect on a trained model")
            for option in ("--length 9", "--width 8", "--heads 2", "--seed 3")
        ),
        *(
            (option, f"rank {MODEL}", "is an option of reading, and no file is given")
            for option in READING
        ),
    ],
    "parse": [
        ("--expand first", "a", "has no effect without --tokenizer"),
        *(
            (option, "--train a --out b", "has no effect here: leave it out with --train")
            for option in ("--file a", "--model a", "--tokenizer a", "--expand all", "--binary", "--format json")
        ),
        *(
            (option, "a", "has no effect here: use it with --train")
            for option in ("--dev a", "--steps 3", "--seed 1", "--language en")
        ),
        ("--evaluate a", "--train a --out b", "has no effect here: leave it out with --train"),
        ("--train a", "a --out b", "TEXT has no effect here: leave it out with --train"),
    ],
    "positions": [
        ("--notes", "--json", "has no effect with --json, which has the notes"),
    ],
    "show": [
        *(
            (option, f"{TREE} {other}", "has no effect without --position")
            for option in (*SIZES, "--seed 1")
            for other in ("", "--checkpoint a")
        ),
        ("--content same", TREE, "has no effect without a position model"),
        ("--slice 0", f"{TREE} {MODEL}", "has no effect without --encoding"),
        ("--quantity bias", TREE, "needs a position model; give"),
    ],
    "study": [
        *(
            (option, f"examples/study.yaml {job}", "has no effect without a run: --table and --compare train nothing")
            for option in ("--jobs 2", "--threads 1", "--fresh")
            for job in ("--table", "--compare a b")
        ),
        ("--table", "examples/study.yaml --compare a b", "--table and --compare both show existing results; give one"),
        ("--only 'a/*'", "examples/study.yaml --only 'diameters/*'", "no run matches a/*; runs are called"),
    ],
    "train": [("--reader amr", "examples/amr.yaml --data.reader amr", "data.reader is given twice, by --data.reader")],
}  # fmt: skip
"""By command: an option, words beside which it cannot act, and what is said."""
ELSEWHERE = {"evaluate": "--length-penalty --split", "generate": "--length-penalty"}
"""Options whose refusal needs a trained model: test_generation."""


def parsers() -> dict[str, ArgumentParser]:
    made = {}
    for name, command in COMMANDS.items():
        made[name] = ArgumentParser(allow_abbrev=False)
        command().arguments(made[name])
    return made


@together("name", COMMANDS)
def test_every_option_acts_always_or_is_refused_where_it_cannot(name: str) -> None:
    """Whoever adds an option says here which it is."""
    declared = {option for option in parsers()[name]._option_string_actions if option not in ("-h", "--help")}
    refused = {option.split()[0] for option, _, _ in IDLE.get(name, [])} | set(ELSEWHERE.get(name, "").split())
    assert declared == refused | set(ACTS[name].split())


@together("name, option, words, message", [(name, *each) for name, rows in IDLE.items() for each in rows])
def test_what_cannot_act_is_refused(name: str, option: str, words: str, message: str) -> None:
    told = complaint(name, *shlex.split(words), *shlex.split(option))
    assert message in told
    assert message.startswith(("--", "TEXT", "no run", "is the conf", "data.")) or option.split()[0] in told


@together("name", COMMANDS)
def test_an_option_with_one_value_is_given_once(name: str) -> None:
    own = parsers()[name]
    positional = ["list" if name == "data" else "rank" if name == "figure" else "a" for action in own._actions
                  if not action.option_strings and action.nargs not in ("?", "*")]  # fmt: skip
    required = [word for action in own._actions if action.required and action.option_strings
                for word in (action.option_strings[0], "a")]  # fmt: skip
    for option, action in own._option_string_actions.items():
        if not option.startswith("--") or action.nargs == 0 or type(action).__name__ == "_AppendAction":
            continue
        count = action.nargs if isinstance(action.nargs, int) else 1
        value = [str(next(iter(action.choices)))] if action.choices else ["1"] * count
        told = complaint(name, *positional, *required, option, *value, option, *value)
        assert told == f"{name}: {option} is given twice, or with its opposite; give it once"


def test_an_override_is_given_once() -> None:
    told = complaint("train", "examples/amr.yaml", "--training.steps", "3", "--training.steps=4")
    assert told == "option '--training.steps' is given twice; give it once"
    told = complaint("positions", "--learnable", "--no-learnable")
    assert told == "positions: --no-learnable is given twice, or with its opposite; give it once"
