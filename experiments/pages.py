"""Put results into the pages that print them: each part between two comments is made from the files of its experiment.

    python experiments/pages.py            # write all pages anew
    python experiments/pages.py --check    # write nothing; say which parts differ, and exit with 1 if any does
    python experiments/pages.py --only "graph to text"

Nothing is measured. A test runs the check, so that no figure on these pages differs from that of its file.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

from structpe.system.files import atomic_text

__all__ = ["PARTS", "Part", "differing"]

HERE = Path(__file__).parent
END = "<!-- end of what is made -->"
STUDIES = (
    "csl",
    "zinc",
    "zinc-tuned",
    "order",
    "minesweeper",
    "minesweeper-tuned",
    "activation",
    "tolokers",
    "tolokers-tuned",
    "cora",
    "cora-attention",
    "molhiv",
)
STUDIES += ("molhiv-tuned", "peptides-gpu", "peptides-tuned", "knowledge", "wn18rr", "esol", "chameleon-tuned")
SPEED = (
    "encodings",
    "encodings-corpora",
    "batches",
    "batches-corpora",
    "memory",
    "every-encoding",
    "every-model",
    "kernels",
)
SPEED += ("hugging-face", "diet", "linear", "dropout", "compiled", "decoding")


@dataclass(frozen=True)
class Part:
    """A part of a page.

    Attributes:
        name: what it is called, on the command line and in its first comment.
        page: the file, below the root of the repository.
        make: its text.
    """

    name: str
    page: str
    make: Callable[[], str]

    @property
    def begin(self) -> str:
        """The comment before it."""
        return f"<!-- made by experiments/pages.py: {self.name} -->"

    def within(self, text: str) -> str:
        """The page's text with this part made anew.

        Raises:
            ValueError: the comments are not there once each.
        """
        if text.count(self.begin) != 1 or END not in text.partition(self.begin)[2]:
            raise ValueError(f"{self.page} needs a line '{self.begin}' and one '{END}' after it")
        before, _, rest = text.partition(self.begin)
        return f"{before}{self.begin}\n\n{self.make().strip()}\n\n{END}{rest.partition(END)[2]}"


def script(path: str) -> ModuleType:
    """A script of the experiments, with the modules that lie beside it."""
    name = "experiments." + path.removesuffix(".py").replace("/", ".")
    if name not in sys.modules:
        file = HERE / path
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        sys.path.insert(0, str(file.parent))
        try:
            spec.loader.exec_module(sys.modules[name])
        finally:
            sys.path.remove(str(file.parent))
    return sys.modules[name]


def studies() -> str:
    """The table of each study."""
    files = [HERE / "benchmarks" / "results" / name / "table.md" for name in STUDIES]
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.exists())


def texts() -> str:
    """The tables of graph to text."""
    return str(script("graph_to_text/run.py").tables())


def pretrained() -> str:
    """A pretrained model, with positions and without, on each corpus."""
    return str(script("pretrained/run.py").tables())


def table_6() -> str:
    """Parameters of BERT-base, counted now."""
    return str(script("parameters/run.py").as_markdown())


def choose() -> str:
    """What positions gain on each task, with intervals."""
    return str(script("choose.py").table())


def comparison() -> str:
    """All position models on five tasks."""
    return str(script("catalogue/table.py").made())


def longer() -> str:
    """Models of sequences on longer and deeper inputs than those of training."""
    return str(script("catalogue/longer.py").made())


def reproduced() -> str:
    """Published numbers beside ours."""
    return str(script("benchmarks/reproduced.py").table())


def expressivity() -> str:
    """Pairs of graphs that are told apart."""
    return str(script("expressivity/run.py").kept())


def brec() -> str:
    """Pairs of graphs that trained models tell apart."""
    return str(script("benchmarks/brec.py").table(HERE / "benchmarks" / "results" / "brec"))


def on_gpu(table: str) -> str:
    """What was measured on a GPU."""
    return str(script("speed/on_gpu.py").made(table))


def of_speed(table: str) -> str:
    """What was measured on a CPU: a file, and how it was made."""
    return str(script("speed/told.py").kept(table))


def slower() -> str:
    """Where another library is faster."""
    return str(script("speed/told.py").slower())


def heavy() -> str:
    """Position models that take long, and why."""
    return str(script("speed/told.py").heavy())


GAINS = ("graph_to_text", "pretrained")


def learned() -> str:
    """Rows of studies against each other, models of text, and a pretrained model with positions and without."""
    parts = script("benchmarks/learned.py").table, *(script(f"{each}/run.py").rows_of_gain for each in GAINS)
    return "\n".join(part() for part in parts)


PARTS = (
    Part("studies", "docs/benchmarks.md", studies),
    Part("reproduced", "docs/reproduced.md", reproduced),
    Part("what we learned", "docs/what-we-learned.md", learned),
    Part("choose", "docs/howto/choose.md", choose),
    Part("comparison", "docs/comparison.md", comparison),
    Part("longer inputs", "docs/comparison.md", longer),
    *(Part(f"{table} on a GPU", "docs/speed.md", partial(on_gpu, table)) for table in script("speed/on_gpu.py").TABLES),
    *(Part(f"speed: {table}", "docs/speed.md", partial(of_speed, table)) for table in SPEED),
    Part("where others are faster", "docs/speed.md", slower),
    Part("models that take long", "docs/speed.md", heavy),
    Part("expressivity", "docs/expressivity.md", expressivity),
    Part("brec", "docs/expressivity.md", brec),
    Part("graph to text", "experiments/README.md", texts),
    Part("pretrained", "experiments/README.md", pretrained),
    Part("table 6", "experiments/README.md", table_6),
)


def differing(part: Part) -> list[str]:
    """Lines of a page that are not those of its results, and those that they should be."""
    text = (HERE.parent / part.page).read_text(encoding="utf-8")
    both = text.splitlines(), part.within(text).splitlines()
    return [line for line in difflib.unified_diff(*both, lineterm="", n=0) if not line.startswith(("---", "+++", "@@"))]


def main() -> int:
    """Write or check; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--only", nargs="+", choices=[part.name for part in PARTS], help="these parts")
    given = parser.parse_args()
    wrong = 0
    for part in [part for part in PARTS if given.only is None or part.name in given.only]:
        lines = differing(part)
        wrong += bool(lines)
        print(f"{part.page}, {part.name}: " + (f"{len(lines)} lines differ" if lines else "as its results"))
        if lines and given.check:
            print("\n".join(lines[:20]))
        elif lines:
            page = HERE.parent / part.page
            atomic_text(page, part.within(page.read_text(encoding="utf-8")))
    return int(given.check and wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
