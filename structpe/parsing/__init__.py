"""From sentences to trees by spaCy, to positions of their words and subwords; and training of parsers."""

from structpe.parsing.models import ParsingError, load_parser
from structpe.parsing.sentences import Options, Parsed, ParsePositions, parse, parse_texts, places, with_places
from structpe.parsing.training import Plan, Progress, evaluate, train

__all__ = [
    "Options",
    "ParsePositions",
    "Parsed",
    "ParsingError",
    "Plan",
    "Progress",
    "evaluate",
    "load_parser",
    "parse",
    "parse_texts",
    "places",
    "train",
    "with_places",
]
