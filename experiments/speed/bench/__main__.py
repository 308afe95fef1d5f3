"""What encodings and position models take, and what other libraries take for the same; needs no corpora.

Tables, as Markdown: encodings beside other libraries that compute the same, of which results are compared before
anything is timed; every encoding; every position model in one attention, as a ratio to attention without positions;
attention with trainable structure beside the usual ways; models of Hugging Face with position models; and batches. All
that a row compares takes turns in one process, on one thread, and the time is that of the processor, so that mainly
ratios are meant to be read. Progress goes to standard error.

    make bench                                                   # everything, some five minutes
    python experiments/speed/bench > bench.md                    # the same, where the environment is active
    python experiments/speed/bench --write                       # and keep it: the tables of docs/speed.md
    python experiments/speed/bench --tables kernels batches      # these of the tables
    python experiments/speed/bench --only laplacian t5           # rows of these encodings and position models
    python experiments/speed/bench --rounds 1                    # quick and rough
    python experiments/speed/bench --molecules HIV.csv --amr AMR.txt --parses EWT.conllu   # the first of your own
    python experiments/speed/bench --list                        # which rows there are
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # timing

import samples
from report import TABLES, listed, report
from turns import Disagreement

from structpe.encodings.compiled import at_once
from structpe.errors import StructPEError


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser("bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="encodings and position models; by default all")
    parser.add_argument("--tables", nargs="+", choices=[table.name for table in TABLES], help="these; by default all")
    parser.add_argument("--rounds", type=int, help="turns of each; by default 3 or 5, as the table has it")
    parser.add_argument("--list", action="store_true", help="print the names of the rows, and measure nothing")
    parser.add_argument(
        "--write",
        nargs="?",
        const="",
        metavar="WORD",
        help="keep the tables in experiments/speed/results; a word comes behind their names",
    )
    files = {"molecules": "SMILES", "amr": "PENMAN", "parses": "CoNLL-U"}
    for name, what in files.items():
        parser.add_argument(f"--{name}", type=Path, help=f"a file of {what} in place of the shipped sample")
    given = parser.parse_args()
    if given.rounds is not None and given.rounds < 1:
        parser.error(f"--rounds is {given.rounds}; give 1 or more")
    if given.write == "" and (given.only or any(getattr(given, name) for name in files)):
        parser.error("--write would put a part in place of whole tables; give it a word, such as --write corpora")
    if given.list:
        print(listed())
        return 0
    keep = f"-{given.write}" if given.write else given.write
    samples.given(smiles=given.molecules, amr=given.amr, conllu=given.parses)
    try:
        with at_once():
            return 0 if report(given.only, given.rounds, keep, given.tables) else 1
    except (Disagreement, StructPEError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
