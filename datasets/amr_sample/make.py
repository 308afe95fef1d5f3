"""Write the AMR sample: expand `grammar.txt` into pairs of a sentence and its graph, and split them.

    python make.py [folder]

The same seed gives the same bytes. Seldom-used lines of the grammar are preferred, so every word is seen about equally
often; a pair is held out only if each of its words, concepts, roles and constants stays in training at least LEAST
times.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
SEED = 7
PER_SCHEME = 16  # sentences made from each line of [sentence]
HELD_OUT = {"test": 24, "dev": 20}
LEAST = 3
ALIGNED = 50  # every 50th training graph carries alignments
WORDS = range(6, 17)  # words of a sentence, its final mark not counted
REPEATABLE = {"person", "name", "and"}  # other concepts occur once in a graph: nobody asks himself to sing
PRONOUNS = {"he": {"m": "he", "f": "she"}, "his": {"m": "his", "f": "her"}}


@dataclass(eq=False)
class Node:
    """A node of a graph, with the surface token it is aligned with."""

    concept: str
    token: Word | None = None
    edges: list[tuple[str, Word | None, Node | Constant]] = field(default_factory=list)


@dataclass(eq=False)
class Constant:
    """A value without a variable of its own: -, +, 2, imperative, "Mira"."""

    text: str
    token: Word | None = None


@dataclass(eq=False)
class Word:
    """A token. Its place in the sentence is known only when the sentence is complete."""

    text: str


@dataclass(frozen=True)
class Phrase:
    """The two sides of an expanded line, and the gender its pronouns take."""

    words: list[Word]
    graph: Node | Constant
    gender: str


@dataclass(frozen=True)
class Pair:
    """A sentence and the root of its graph."""

    words: list[Word]
    graph: Node

    @property
    def sentence(self) -> str:
        """The tokens with a space between two."""
        return " ".join(word.text for word in self.words)

    def symbols(self) -> set[str]:
        """Everything a model must have met: words, concepts, roles and constants."""
        found = {f"word {word.text}" for word in self.words}
        for node in nodes(self.graph):
            found.add(f"concept {node.concept}")
            for role, _, target in node.edges:
                found.add(f"role {role}")
                if isinstance(target, Constant):
                    found.add(f"constant {target.text}")
        return found


def nodes(root: Node) -> list[Node]:
    """The nodes below `root` in the order in which PENMAN notation first mentions them."""
    seen: dict[int, Node] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack += [target for *_, target in reversed(node.edges) if isinstance(target, Node)]
    return list(seen.values())


class Grammar:
    """The lines of `grammar.txt` by category, and how often each was used."""

    def __init__(self, text: str, chance: random.Random):
        self.chance = chance
        self.lines: dict[str, list[tuple[str, str, str]]] = {}
        self.used: Counter[tuple[str, int]] = Counter()
        for line in filter(None, (row.split("#")[0].strip() for row in text.splitlines())):
            if line.startswith("["):
                current = self.lines.setdefault(line.strip("[]"), [])
            else:
                words, graph, *gender = (part.strip() for part in line.split("|"))
                current.append((words, graph, gender[0] if gender else ""))

    def expand(self, category: str, form: int = 0, line: int | None = None) -> Phrase:
        """Choose a line of `category`, the less used the likelier, and expand its parts."""
        number = self.choose(category) if line is None else line
        words, graph, gender = self.lines[category][number]
        parts: dict[str, Phrase] = {}
        columns = [self.say(token, form, parts) for token in re.findall(r"\{[^}]*\}|\S+", words)]
        root = Reader(graph, parts, columns).read()
        gender = gender or next((part.gender for part in parts.values() if part.gender), "")
        return Phrase([word for column in columns for word in column], root, gender)

    def choose(self, category: str) -> int:
        """The number of a line of `category`."""
        numbers = range(len(self.lines[category]))
        weights = [(1 + self.used[category, number]) ** -2 for number in numbers]
        number = self.chance.choices(numbers, weights)[0]
        self.used[category, number] += 1
        return number

    def say(self, token: str, form: int, parts: dict[str, Phrase]) -> list[Word]:
        """The words of one token of a line; a part that it names is remembered in `parts`."""
        if not token.startswith("{"):
            return [Word(token.split("/")[form] if "/" in token else token)]
        head, _, name = token.strip("{}").partition(" ")
        category, _, option = head.partition(":")
        if option in PRONOUNS:
            return [Word(PRONOUNS[option][parts[category].gender])]
        phrase = parts[name or category] = self.expand(category, int(option or 0))
        return phrase.words


class Reader:
    """Reads the graph side of a line; {parts} are the graphs of its parts."""

    def __init__(self, text: str, parts: dict[str, Phrase], columns: list[list[Word]]):
        self.tokens = re.findall(r"[()]|[^\s()]+", text)
        self.parts = parts
        self.columns = columns

    def read(self) -> Node | Constant:
        """The next node, with its edges, or the next constant."""
        if self.tokens[0] != "(":
            return self.atom(self.tokens.pop(0), Constant)
        self.tokens.pop(0)
        node = self.atom(self.tokens.pop(0), Node)
        assert isinstance(node, Node), "a constant has no edges"
        while self.tokens[0] != ")":
            role, token = self.aligned(self.tokens.pop(0))
            node.edges.append((role, token, self.read()))
        self.tokens.pop(0)
        node.edges.sort(key=lambda edge: edge[0] if re.fullmatch(r":ARG\d", edge[0]) else ":a")
        return node

    def atom(self, text: str, kind: type[Node] | type[Constant]) -> Node | Constant:
        """The graph of a part, or a new node or constant."""
        if text.startswith("{"):
            return self.parts[text.strip("{}")].graph
        return kind(*self.aligned(text))

    def aligned(self, text: str) -> tuple[str, Word | None]:
        """A label and the word that `~k` names."""
        label, _, column = text.partition("~")
        return label, self.columns[int(column)][0] if column else None


def penman(pair: Pair, alignments: bool = False) -> str:
    """The graph in PENMAN notation; a node mentioned again is its variable alone."""
    place = {id(word): position for position, word in enumerate(pair.words)}
    names: dict[int, str] = {}
    initials: Counter[str] = Counter()

    def marked(text: str, token: Word | None) -> str:
        return f"{text}~e.{place[id(token)]}" if alignments and token else text

    def write(item: Node | Constant, indent: str) -> str:
        if isinstance(item, Constant):
            return marked(item.text, item.token)
        if id(item) in names:
            return names[id(item)]
        initial = item.concept[0]
        initials[initial] += 1
        names[id(item)] = initial + (str(initials[initial]) if initials[initial] > 1 else "")
        rows = [f"({names[id(item)]} / {marked(item.concept, item.token)}"]
        for role, token, target in item.edges:
            rows.append(f"{indent}{marked(role, token)} {write(target, indent + '    ')}")
        return "\n".join(rows) + ")"

    return write(pair.graph, "    ")


def make_pairs(grammar: Grammar) -> list[Pair]:
    """PER_SCHEME different sentences with different graphs from every line of [sentence]."""
    pairs: dict[str, Pair] = {}
    graphs: set[str] = set()
    for line in range(len(grammar.lines["sentence"])):
        wanted = len(pairs) + PER_SCHEME
        while len(pairs) < wanted:
            before = grammar.used.copy()
            phrase = grammar.expand("sentence", line=line)
            assert isinstance(phrase.graph, Node), "a sentence has a graph"
            pair = Pair(phrase.words, phrase.graph)
            graph = penman(pair)
            if acceptable(pair) and pair.sentence not in pairs and graph not in graphs:
                pairs[pair.sentence] = pair
                graphs.add(graph)
            else:
                grammar.used = before
    return list(pairs.values())


def acceptable(pair: Pair) -> bool:
    """Of the right length, and without two nodes of one concept or name."""
    concepts = Counter(node.concept for node in nodes(pair.graph))
    twice = {concept for concept, count in concepts.items() if count > 1} - REPEATABLE
    values = [target.text for node in nodes(pair.graph) for *_, target in node.edges if isinstance(target, Constant)]
    names = [text for text in values if text.startswith('"')]
    named_twice = len(names) > len(set(names))
    return len(pair.words) - 1 in WORDS and not twice and not named_twice


def split(pairs: list[Pair], chance: random.Random) -> dict[str, list[Pair]]:
    """Hold pairs out, one of a scheme before a second, while training keeps every symbol LEAST times."""
    left = Counter(symbol for pair in pairs for symbol in pair.symbols())
    schemes = [pairs[start : start + PER_SCHEME] for start in range(0, len(pairs), PER_SCHEME)]
    for scheme in schemes:
        chance.shuffle(scheme)
    turns = [pair for turn in zip(*schemes, strict=True) for pair in chance.sample(turn, len(turn))]
    splits: dict[str, list[Pair]] = {"train": []}
    for name, size in HELD_OUT.items():
        splits[name] = []
        for pair in list(turns):
            if len(splits[name]) < size and all(left[symbol] > LEAST for symbol in pair.symbols()):
                splits[name].append(pair)
                turns.remove(pair)
                left.subtract(pair.symbols())
    splits["train"] = chance.sample(turns, len(turns))
    return splits


def write_split(path: Path, name: str, pairs: list[Pair]) -> None:
    """One block for each pair: its id, its sentence and its graph."""
    blocks = []
    for number, pair in enumerate(pairs, 1):
        alignments = name == "train" and number % ALIGNED == 0
        head = f"# ::id island.{name}.{number}\n# ::snt {pair.sentence}\n"
        blocks.append(head + penman(pair, alignments) + "\n")
    path.write_text("\n".join(blocks), encoding="utf-8")


def main(folder: Path) -> None:
    """Make the three files in `folder`."""
    chance = random.Random(SEED)
    grammar = Grammar((HERE / "grammar.txt").read_text(encoding="utf-8"), chance)
    for name, pairs in split(make_pairs(grammar), chance).items():
        write_split(folder / f"{name}.txt", name, pairs)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
