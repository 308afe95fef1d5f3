"""The entry point of the command line: find the command, run it, and turn every error into one clear message.

Exit codes: 0 done; 1 the command failed; 2 the command line or the configuration is invalid; 130 interrupted; 129 and
143 ended by SIGHUP and SIGTERM; 141 the reader of the output has closed it.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
import textwrap
from argparse import (
    SUPPRESS,
    Action,
    ArgumentParser,
    BooleanOptionalAction,
    RawDescriptionHelpFormatter,
    _AppendAction,
)
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NoReturn

from structpe import __version__
from structpe.cli.base import COMMANDS, Command, UsageError
from structpe.errors import ConfigError, PositionError, explained
from structpe.registry import import_code, own_code, unknown
from structpe.system.printing import escaping, show_error
from structpe.system.processes import ended_by, ending, sleeping

__all__ = ["main", "parser"]

SHELLS = ("bash", "zsh", "tcsh")
FILES = ("CONFIG", "FILE", "FOLDER", "RUN")
"""The words in help that mean a path."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the words after ``structpe``; those of this process by default.

    Returns:
        The exit code.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    with escaping():
        return _main(argv)


def _main(argv: list[str]) -> int:
    try:
        with ending():
            sleeping()  # before any command loads PyTorch
            _run(argv)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:
        # Python would print another error when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except SystemExit as end:
        if isinstance(end.__context__, KeyboardInterrupt):  # Lightning exits when it is interrupted
            return _say("interrupted", 130)
        if name := ended_by(end.code):
            return _say(f"ended by {name}", int(end.code or 0))
        raise
    except Exception as error:
        if "--debug" in argv:
            sys.excepthook = show_error
            raise
        return _say(*_explained(error))


class _Parser(ArgumentParser):
    """Raises an error instead of printing it and exiting."""

    def error(self, message: str) -> NoReturn:
        command = self.prog.partition(" ")[2]
        error = UsageError(f"{message}; see '{self.prog} --help'")
        raise error.at(command) if command else error


def parser(names: Iterable[str] = COMMANDS) -> ArgumentParser:
    """The parser of the commands of these names, whose modules it imports."""
    top = _Parser(
        prog="structpe",
        description="Structural position information for Transformers.",
        epilog="'structpe COMMAND --help' shows the arguments of a command, with an example.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"structpe {__version__}")
    top.add_argument("--print-completion", choices=SHELLS, help="print a completion script for this shell, and exit")
    _debug(top)
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands", required=True)
    for name in names:
        command = COMMANDS[name]
        doc = inspect.getdoc(command) or ""
        own = commands.add_parser(
            name,
            help=doc.partition("\n")[0].rstrip("."),
            description=_folded(doc),
            epilog="example:\n" + "\n".join(f"  {line}" for line in command.example.splitlines()),
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        _debug(own)
        own.add_argument(
            "--import",
            dest="imports",
            metavar="CODE",
            action="append",
            default=[],
            help="a module or a .py file with models, encodings, readers or the like of your own; its code is run",
        )
        own.set_defaults(parser=own)
        command().arguments(own)
    return top


def _folded(doc: str) -> str:
    """A docstring whose paragraphs fit the terminal; what is indented or a list stays as it is."""
    width, paragraphs = shutil.get_terminal_size().columns - 2, doc.split("\n\n")
    plain = [not re.search(r"^[ *-]", each, re.MULTILINE) for each in paragraphs]
    return "\n\n".join(
        textwrap.fill(" ".join(each.split()), width) if folds else each
        for each, folds in zip(paragraphs, plain, strict=True)
    )


def _debug(parser: ArgumentParser) -> None:
    parser.add_argument("--debug", action="store_true", default=SUPPRESS, help="show the traceback of an error")


def _run(argv: list[str]) -> None:
    if argv and argv[0] == "--print-completion" and argv[1:2] and argv[1] in SHELLS:
        print(_completion(argv[1]))
        return
    if argv and not argv[0].startswith("-") and argv[0] not in COMMANDS:
        raise UsageError(unknown("command", argv[0], list(COMMANDS)))
    named = argv[:1] if argv and argv[0] in COMMANDS else COMMANDS
    given, rest = parser(named).parse_known_args(argv or ["--help"])
    command: Command = COMMANDS[given.command]()
    if rest and not command.overrides:
        raise _unknown(rest[0], given.parser).at(command.name)
    given.overrides = rest
    given.named = _named(argv, given.parser)
    for code in given.imports:
        import_code(code)
    command.run(given)


def _named(argv: Sequence[str], parser: ArgumentParser) -> frozenset[str]:
    """The options on the command line.

    Raises:
        UsageError: an option that takes one value is given twice.
    """
    words = [word.partition("=")[0] for word in takewhile("--".__ne__, argv) if word.startswith("--")]
    seen: set[Action] = set()
    for word in words:
        action = parser._option_string_actions.get(word)
        if action in seen:
            raise UsageError(f"{word} is given twice, or with its opposite; give it once").at(parser.prog.split()[-1])
        if (
            action is not None
            and not isinstance(action, _AppendAction)
            and (action.nargs != 0 or isinstance(action, BooleanOptionalAction))
        ):
            seen.add(action)
    return frozenset(words)


def _unknown(word: str, parser: ArgumentParser) -> UsageError:
    """The error for an unknown word."""
    if not word.startswith("-"):
        return UsageError(f"{word!r} is one argument too many; see '{parser.prog} --help'")
    # argparse has no public list of declared arguments; this name has been there since its first version.
    known = [name for name in parser._option_string_actions if name.startswith("--")]
    return UsageError(unknown("option", word.partition("=")[0], known))


def _completion(shell: str) -> str:
    import shtab

    top = parser()
    for action in top._actions:
        for own in (action.choices or {}).values() if isinstance(action.choices, dict) else ():
            for argument in own._actions:
                if argument.metavar in FILES:
                    argument.complete = shtab.FILE
    return str(shtab.complete(top, shell))


def _explained(error: Exception) -> tuple[str, int]:
    """The message for an error, and the exit code."""
    wrong = isinstance(error, (UsageError, ConfigError, PositionError))
    return explained(error, "add --debug to see the traceback", own_code(error)), 2 if wrong else 1


def _say(message: str, code: int) -> int:
    print(f"structpe: {message}", file=sys.stderr)
    return code
