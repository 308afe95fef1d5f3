"""Prints the page cheatsheet.md: a row per family of position models. ``make docs`` runs it.

    python docs/site/cheatsheet.py > docs/cheatsheet.md

Git ignores the page: a new model must not change it. Everything in it is read from the registry or measured.
"""

from __future__ import annotations

import inspect
import io
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))  # for model_pages, where Sphinx does not look

import model_pages  # noqa: E402

import structpe  # noqa: E402
from structpe.attention import KERNELS  # noqa: E402
from structpe.cli.rows import ModelRow  # noqa: E402
from structpe.positions import MODELS, PositionModel  # noqa: E402

__all__ = ["families", "main"]

HEAD = """\
---
orphan: true
---
# Cheatsheet

All families of position models on one page. Each model has [a page of its own](catalogue.md).
[Choose one](howto/choose.md) by what you need.

```python
structure = structpe.read(FILE)[0].structure       # or structpe.as_structure(OBJECT), structpe.path(WORDS)
model = structpe.build({"name": NAME, "encoding": ENCODING}, structpe.Dims(width=64, heads=4, layers=2))
prepared = model.prepare(structpe.encode([structure], model.encodings))    # once per batch
x = model.inputs(x, prepared)                                              # once, at the input
out = structpe.attend(q, k, v, model.terms(prepared, structpe.Site(layer=0)))    # in each layer
```

"""
COLUMNS = ("family", "models", "made for", "reads", "changes", "fast kernels", "decodes", "adapters", "parameters")
COLUMNS += ("step", "memory")
FOOT = """
* *Made for*: most run on other structures too, with another encoding that is of the same kind.
* *Reads*: the encoding by default. Per unit: `order`, `depth`, `branch-path`, `laplacian`, `random-walk`.
  Per pair: `offset`, `distance`, `undirected-distance`, `spr-relative`, `label-path`.
  `structpe encodings` lists all.
* *Changes*: fields of [the one equation](idea.md#the-one-equation); *input* is added before the first layer.
* *Fast kernels*: those that compute all fields of most models of the family. `dense` computes all, slowly, and `flex`
  needs CUDA; `auto` chooses.
* *Decodes*: models that a decoder, which writes unit by unit, can use.
* *Adapters*: *mask* fits every attention of PyTorch as an additive mask; *inject* enters models of
  Hugging Face, PyTorch, PyG, DGL and timm; - replaces the layer's own attention, or what it
  is projected from, and enters `nn.TransformerEncoder`, PyG's `GPSConv` and DGL. [How](adapters.md).
* *Parameters*: fewest and most of the family, at width 512, 8 heads, 6 layers.
* *Step*, *memory*: of a training step, relative to no positions; the median of the family in
  [the comparison](comparison.md), - where none is measured.
"""
SHOWN = 4
"""How many models of a family a row names."""


class Facts(NamedTuple):
    """What is known of a model."""

    row: ModelRow
    used: frozenset[str] | None
    adapter: str


def main() -> None:
    """Print the page."""
    print(HEAD + ":::{table}\n:class: filtered cheatsheet\n")
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|{'---|' * len(COLUMNS)}")
    for title, names in families().items():
        print(f"| {' | '.join(cells(title, [facts(name) for name in names]))} |")
    print(":::\n\n" + FOOT.strip())


def families() -> dict[str, list[str]]:
    """The first line of each family in ``structpe/positions``, with its models."""
    found: dict[str, list[str]] = {}
    for name, model in MODELS.items():
        family = model.__module__
        found.setdefault((import_module(family).__doc__ or family).partition("\n")[0].rstrip("."), []).append(name)
    return dict(sorted(found.items()))


def facts(name: str) -> Facts:
    """What a model uses on the first structure that it takes, and its row of the table."""
    used = next((terms for kind in model_pages.KINDS if (terms := model_pages.layer(name, kind)[1]) is not None), None)
    return Facts(ModelRow.measured(name, model_pages.DIMS), used, adapter(name, used))


def adapter(name: str, used: frozenset[str] | None) -> str:
    """How it enters the attention of others."""
    model = MODELS[name]
    if used is None or model.sources is not PositionModel.sources:
        return "-"
    return "mask" if used and used <= {"bias", "mask"} and model.inputs is PositionModel.inputs else "inject"


def cells(title: str, known: Sequence[Facts]) -> Iterator[str]:
    """The row of a family."""
    names = [each.row.name for each in known]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    yield title
    yield ", ".join(f"[`{name}`](catalogue/{name}.md)" for name in names[:SHOWN]) + more
    yield several(each.row.spec.structure for each in known if each.row.spec)
    yield several(encoding for name in names for encoding in model_pages.encodings(name))
    yield several(
        [*(field for each in known for field in each.used or ()), *("input" for each in known if at_input(each))]
    )
    yield ", ".join(kernels(known)) or "-"
    yield share([bool(each.row.decodes) for each in known])
    yield several(each.adapter for each in known)
    counts = sorted(each.row.parameters for each in known if each.row.parameters is not None)
    yield "-" if not counts else f"{counts[0]:,}" if counts[0] == counts[-1] else f"{counts[0]:,} to {counts[-1]:,}"
    for key in ("time", "memory"):
        yield cost(names, key)


def at_input(known: Facts) -> bool:
    """Whether it adds to the input."""
    return MODELS[known.row.name].inputs is not PositionModel.inputs


def several(found: Any, most: int = 4) -> str:
    """The most frequent words, most frequent first."""
    words = list(found)
    ranked = sorted(dict.fromkeys(words), key=lambda word: (-words.count(word), word))
    return ", ".join(ranked[:most]) + (", ..." if len(ranked) > most else "") or "-"


def kernels(known: Sequence[Facts]) -> Iterator[str]:
    """Kernels that compute more than half of the models, but for the reference and the one that must be enabled."""
    used = [each.used for each in known if each.used is not None]
    for name, kernel in KERNELS.items():
        if name not in ("dense", "flex") and 2 * sum(kernel.can(terms) for terms in used) > len(known):
            yield name


def share(flags: Sequence[bool]) -> str:
    """All, none, or how many."""
    return {0: "none", len(flags): "all"}.get(sum(flags), f"{sum(flags)} of {len(flags)}")


def cost(names: Sequence[str], key: str) -> str:
    """The median of what was measured."""
    runs = [run for name in names for run in model_pages.compared()["cost"].get(name, [])[:1]]
    found = [run[key] for run in runs if run.get(key) is not None]
    return f"{statistics.median(found):.1f}" if found else "-"


def write(_: Any) -> None:
    """Write the page, unless it is newer than the library and what makes it."""
    file = HERE / "cheatsheet.md"
    sources = [Path(__file__), Path(model_pages.__file__), *Path(inspect.getfile(structpe)).parent.rglob("*.py")]
    if not file.is_file() or file.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        with redirect_stdout(io.StringIO()) as page:
            main()
        file.write_text(page.getvalue(), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    main()
