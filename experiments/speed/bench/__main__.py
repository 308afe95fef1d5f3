"""What encodings and position models take, and what other libraries take for the same; needs no corpora.

Three tables, as Markdown: encodings beside other libraries that compute the same, of which results are compared before
anything is timed; every encoding; every position model in one attention, as a ratio to attention without positions.
All that a row compares takes turns in one process, on one thread, and the time is that of the processor, so that
mainly ratios are meant to be read. Progress goes to standard error.

    make bench                                                   # everything, some five minutes
    python experiments/speed/bench > bench.md                    # the same, where the environment is active
    python experiments/speed/bench --only laplacian t5           # rows of these encodings and position models
    python experiments/speed/bench --rounds 1                    # quick and rough
    python experiments/speed/bench --without-numba               # as where numba is not installed
    python experiments/speed/bench --molecules HIV.csv --amr AMR.txt --parses EWT.conllu   # the first of your own
    python experiments/speed/bench --list                        # which rows there are
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import samples
from report import listed, report
from turns import Disagreement

from structpe.encodings.compiled import at_once, slow
from structpe.errors import StructPEError


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser("bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="encodings and position models; by default all")
    parser.add_argument("--rounds", type=int, help="turns of each; by default 5, 3 and 9 in the three tables")
    parser.add_argument("--list", action="store_true", help="print the names of the rows, and measure nothing")
    parser.add_argument("--without-numba", action="store_true", help="encode as where numba is not installed")
    for name, what in (("molecules", "SMILES"), ("amr", "PENMAN"), ("parses", "CoNLL-U")):
        parser.add_argument(f"--{name}", type=Path, help=f"a file of {what} in place of the shipped sample")
    given = parser.parse_args()
    if given.rounds is not None and given.rounds < 1:
        parser.error(f"--rounds is {given.rounds}; give 1 or more")
    if given.list:
        print(listed())
        return 0
    samples.given(smiles=given.molecules, amr=given.amr, conllu=given.parses)
    try:
        with slow() if given.without_numba else at_once():
            return 0 if report(given.only, given.rounds) else 1
    except (Disagreement, StructPEError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
