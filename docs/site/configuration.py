"""Writes configuration.md, every key of a graph-to-text run and of a study, from the docstrings that the keys have.

python docs/site/configuration.py > docs/configuration.md
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml
from docstring_parser import parse

from structpe.nn import GraphModelConfig
from structpe.tasks import (
    GraphToTextConfig,
    InjectConfig,
    ParserConfig,
    PredictionTraining,
    PretrainedTextConfig,
    SamplingConfig,
    StudyConfig,
)
from structpe.tasks.prediction.study import Published

HEAD = """\
# Configuration: every key of a run and of a study

Every key of a run of graph to text, of a parser, and of a study, generated from the code by `python
docs/site/configuration.py > docs/configuration.md`. A configuration is a YAML file such as
[examples/amr.yaml](../examples/amr.yaml) or [examples/study.yaml](../examples/study.yaml); keys that are not in it have
their defaults. In Python it is a mapping of the same keys, or
[an object](graph_to_text.md#a-table-of-facts-with-texts). On the command line
`--model.width 128` overrides the file; values are YAML. Paths are relative to the working directory. For how to use
them, see [From your file to a result](graph_to_text.md) and [Benchmarks](benchmarks.md).

Keys are texts and must be unique; values are null, true, false, numbers, texts, lists and mappings. Dates are texts.
Every number has a maximum, far above what any machine can compute; a larger one raises an error.

## Graph to text
"""

PRETRAINED = """
## Graph to text with a pretrained model

A configuration with `model.pretrained`, such as [examples/pretrained.yaml](../examples/pretrained.yaml); see
[Train a pretrained model on graphs](howto/pretrained.md). All keys of the run, `data`,
`training` and `search` that are not listed again are as above.
"""

PARSER = """
## Parser

A configuration with `task: parser`, for `structpe train`; `structpe parse --train` has the same as options. See
[Parsing](parsing.md).
"""

STUDIES: dict[str, type] = {
    "`models.NAME`": GraphModelConfig,
    "`training`": PredictionTraining,
    "`sampling`": SamplingConfig,
    "`published`": Published,
}


def main() -> None:
    """Print the page."""
    print(HEAD)
    run(GraphToTextConfig)
    print(PRETRAINED)
    run(PretrainedTextConfig, GraphToTextConfig)
    print(f"\n{table('`inject`, for each', InjectConfig, '')}")
    print(PARSER)
    run(ParserConfig)
    print(f"\n## Studies\n\n{table('The study', StudyConfig, '')}")
    for name, part in STUDIES.items():
        print(f"\n{table(name, part, '')}")


def run(cls: type, known: type | None = None) -> None:
    """Print the keys of a run, but those that another run has with the same default."""
    theirs = {} if known is None else get_type_hints(known)
    groups = {f.name: get_type_hints(cls)[f.name] for f in fields(cls)}
    print(table("The run", cls, "", [name for name, hint in groups.items() if is_dataclass(hint) or name in theirs]))
    for name, group in groups.items():
        if is_dataclass(group) and isinstance(group, type) and group is not theirs.get(name):
            print(f"\n{table(f'`{name}`', group, f'{name}.', known=theirs.get(name))}")


def table(title: str, cls: type, prefix: str, skip: Sequence[str] = (), known: type | None = None) -> str:
    """A heading, and a line of the table for each key."""
    head = ["| key | values | default | meaning |", "|---|---|---|---|"]
    return "\n".join([f"### {title}", "", *head, *rows(cls, prefix, skip, known)])


def rows(cls: type, prefix: str, skip: Sequence[str] = (), known: type | None = None) -> Iterator[str]:
    """The lines of the table, without keys that ``known``, a base class, has with the same default."""
    hints = get_type_hints(cls)
    theirs = {each.name: each for each in fields(known)} if known and issubclass(cls, known) else {}
    documented = [
        parse(each.__doc__ or "").params for each in reversed(cls.__mro__)
    ]  # a class may only change defaults
    meanings = {param.arg_name: param.description for params in documented for param in params}
    for field in fields(cls):
        if field.name in skip:
            continue
        hint = hints[field.name]
        group = next(
            (each for each in (hint, *get_args(hint)) if is_dataclass(each) and each is field.default_factory), None
        )
        if hint is not group and (field.name not in theirs or default(field) != default(theirs[field.name])):
            if field.name not in meanings:
                raise SystemExit(f"{cls.__name__}: add a line for {field.name!r} to Args in its docstring")
            meaning = " ".join(meanings[field.name].split()).replace("``", "`")
            cells = [f"`{prefix}{field.name}`", values(hint), default(field), meaning]
            yield f"| {' | '.join(cells)} |"
        if group is not None:
            yield from rows(
                group, f"{prefix}{field.name}.", known=get_type_hints(known)[field.name] if theirs else None
            )


def values(hint: Any) -> str:
    """A type as a person reads it."""
    if hint is Any:
        return "name, mapping or list"
    if get_origin(hint) is Literal:
        return ", ".join(f"`{each}`" for each in get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return ", ".join(values(each) for each in get_args(hint))
    if is_dataclass(hint):
        return "a mapping"
    if hint is NoneType:
        return "`null`"
    # Lists and mappings as Python writes them, without the modules of what they hold.
    return f"`{re.sub(r'[a-z_]+[.]', '', str(hint)) if get_origin(hint) else hint.__name__}`"


def default(field: Field[Any]) -> str:
    """The default as YAML has it."""
    if field.default_factory is not MISSING:
        made = field.default_factory()
        return "as below" if is_dataclass(made) else f"`{yaml.safe_dump(made, default_flow_style=True).strip()}`"
    if field.default is MISSING:
        return "required"
    return f"`{yaml.safe_dump(field.default).partition(chr(10))[0]}`"


if __name__ == "__main__":
    main()
