"""``structpe parse``: parse sentences to tree positions, and train a parser."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from structpe.cli._scores import print_scores
from structpe.cli.base import Command, UsageError, path_of, print_table, refuse_idle, seed_of
from structpe.errors import ReadError, located
from structpe.system.printing import printable

if TYPE_CHECKING:
    from structpe.parsing import Options, Parsed

__all__ = ["ParseCommand"]

WIDEST = 25
"""The largest number of words for relative positions in a table."""
JOBS: dict[str, tuple[str, ...]] = {
    "parse": ("text", "file", "model", "tokenizer", "expand", "binary", "format", "out"),
    "--train": ("train", "dev", "out", "steps", "seed", "language"),
    "--evaluate": ("evaluate", "model"),
}
"""The options of each job."""


class ParseCommand(Command, name="parse"):
    """Parse sentences, and show the positions of their words and subwords in the tree.

    For each word, or each subword with a tokenizer, the output has absolute SPR, its depth; relative SPR to every other
    word; and TPE, the index of the word among its siblings, then that of its head, and so on up to the root (branches).
    The table is shortened, tsv and json are complete; conllu has words only.

    The parser is a pipeline of spaCy. --train trains one on trees in CoNLL-U, as 'structpe train' does with 'task:
    parser' in its file; after an interruption, the same command resumes. Tags are those of Universal Dependencies
    (upos) and of the treebank (xpos), each if the trees have them. --evaluate scores a parser, as
    'structpe evaluate' does.
    """

    example = (
        'structpe parse "The keeper lit the lamp."\n'
        "structpe parse --file text.txt --tokenizer tokenizer.json --format json --out positions.json\n"
        "structpe parse --train train.conllu --dev dev.conllu --language en --out parser\n"
        "structpe parse --evaluate test.conllu --model parser"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("text", metavar="TEXT", nargs="?", help="a sentence, or several")
        add("--file", metavar="FILE", type=path_of, help="text in UTF-8, with blank lines between texts")
        add("--model", metavar="FOLDER", help="folder or name of a pipeline (default: en_core_web_sm)")
        add("--tokenizer", metavar="FILE", help="a tokenizer.json, or a folder that has one")
        add(
            "--expand",
            choices=("all", "first", "chain"),
            help="positions of subwords (default: all those of their word)",
        )
        add("--binary", action="store_true", default=None, help="TPE of the binary tree: left child, right sibling")
        add("--format", choices=("table", "json", "conllu", "tsv"), help="format of the output (default: table)")
        add("--out", metavar="FILE", type=path_of, help="file of the output; with --train the folder of the new parser")
        add("--train", metavar="FILE", nargs="+", help="learn from these CoNLL-U files or folders")
        add("--dev", metavar="FILE", nargs="+", help="choose the best model on these")
        add("--steps", metavar="N", type=int, help="steps of training (default 3000)")
        add("--seed", metavar="N", type=seed_of, help="seed of training (default 0)")
        add("--language", metavar="CODE", help="language of spaCy's tokenizer (default: xx, for many languages)")
        add("--evaluate", metavar="FILE", nargs="+", help="score the model on these CoNLL-U files or folders")

    def run(self, given: Namespace) -> None:
        job = "--train" if given.train else "--evaluate" if given.evaluate else "parse"
        given_names = {name for names in JOBS.values() for name in names if getattr(given, name) is not None}
        if wrong := sorted(given_names.difference(JOBS[job])):
            word = "TEXT" if wrong[0] == "text" else f"--{wrong[0]}"
            remedy = "use it with --train" if job == "parse" else f"leave it out with {job}"
            raise UsageError(f"{word} has no effect here: {remedy}").at("parse")
        {"parse": _parse, "--train": _train, "--evaluate": _evaluate}[job](given)


def _parse(given: Namespace) -> None:
    from structpe.parsing import Options, load_parser, parse_texts
    from structpe.parsing.models import DEFAULT
    from structpe.transforms.units import as_tokenizer

    if (given.text is None) == (given.file is None):
        raise UsageError('give either a text or a file: structpe parse "TEXT", or structpe parse --file FILE').at(
            "parse"
        )
    if given.tokenizer is None:
        refuse_idle(given, "without --tokenizer", "--expand")
    if given.format == "conllu" and given.tokenizer:
        raise UsageError("CoNLL-U has words and no subwords; leave --tokenizer out, or choose json or tsv").at("parse")
    if given.file is not None and not given.file.is_file():
        raise ReadError("there is no such file; check the path").at(given.file)
    nlp = load_parser(given.model or DEFAULT)
    tokenizer = as_tokenizer(given.tokenizer) if given.tokenizer else None
    options = Options(tokenizer, given.expand or "all", bool(given.binary))
    texts = [given.text] if given.file is None else _paragraphs(given.file)
    pieces = _formatted(given, _nonempty(parse_texts(texts, nlp, options)), options)
    if given.out is None:
        for piece in pieces:
            sys.stdout.write(piece)
    else:
        _write(given.out, pieces)


def _paragraphs(file: Path) -> Iterator[str]:
    from structpe.formats.text import blocks

    with located(file):
        for _, block, _ in blocks(file):
            yield "\n".join(block)


def _nonempty(sentences: Iterator[Parsed]) -> Iterator[Parsed]:
    """Yield the sentences, and report losses of the tokenizer at the end; raise an error without a sentence."""
    count, lossy = 0, 0
    for parsed in sentences:
        count += 1
        lossy += parsed.split is not None and not parsed.split.report.complete
        yield parsed
    if not count:
        raise ReadError("there is no sentence in the text; give at least one word")
    if lossy:
        print(f"structpe: {lossy} of {count} sentences could not be aligned without loss", file=sys.stderr)


def _formatted(given: Namespace, sentences: Iterator[Parsed], options: Options) -> Iterable[str]:
    from structpe.parsing.formats import as_conllu, as_json, as_tsv
    from structpe.parsing.models import DEFAULT

    subwords = options.tokenizer is not None
    if given.format == "json":
        return as_json(sentences, given.model or DEFAULT, options.expand)
    if given.format == "conllu":
        return as_conllu(sentences)
    if given.format == "tsv":
        return as_tsv(sentences, subwords)
    return (_table(parsed, subwords) for parsed in sentences)


def _table(parsed: Parsed, subwords: bool) -> str:
    from structpe.parsing.formats import rows

    cells = [row[1:] for row in rows(parsed, subwords)]
    unit = ["subword", "id"] if subwords else []
    header = ["", "word", *unit, "head", "relation", "upos", "xpos", "depth", "branches"]
    wide = len(cells) > WIDEST
    whole = [row[:-1] + ([] if wide else row[-1].split(",")) for row in cells]
    header += [] if wide else [str(place) for place in range(1, len(cells) + 1)]
    numeric = [name for name in header if name.isdigit() or name in ("", "id", "head", "depth")]
    with redirect_stdout(StringIO()) as printed:
        print(printable(parsed.item.metadata["text"]))
        print_table(header, whole, numeric)
        if wide:
            print(f"(relative positions of more than {WIDEST}: --format tsv or json)")
        if parsed.split is not None and not parsed.split.report.complete:
            print(f"({parsed.split.report})")
        print()
    return printed.getvalue()


def _write(out: Path, pieces: Iterable[str]) -> None:
    from structpe.system.files import atomic_write

    def write(path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)

    atomic_write(out, write)
    print(printable(f"{out}: written"))


def _train(given: Namespace) -> None:
    from structpe.tasks.parser import ParserConfig, ParserData, ParserTraining, train_parser

    if given.out is None:
        raise UsageError("--train needs --out, the folder of the new parser").at("parse")
    chosen = {name: getattr(given, name) for name in ("steps", "seed") if getattr(given, name) is not None}
    language = {} if given.language is None else {"language": given.language}
    data = ParserData(given.train, given.dev)
    train_parser(ParserConfig(data, training=ParserTraining(**chosen), out=str(given.out), **language))


def _evaluate(given: Namespace) -> None:
    from structpe.formats.reading import choose
    from structpe.parsing import evaluate, load_parser
    from structpe.parsing.models import DEFAULT

    for file in given.evaluate:
        choose(file, "conllu")  # before the model is loaded, which is slow
    print_scores(evaluate(given.evaluate, load_parser(given.model or DEFAULT)))
