"""Write the triples sample: choose trees of facts from `facts.txt`, put them into words, and split them.

    python make.py [folder]

The same seed gives the same bytes. Seldom-used facts are preferred, so every entity is seen about equally often; the
program refuses splits where a held-out entity or relation is in training less than LEAST times.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
SEED = 11
SIZES = (1, 2, 3, 4)
SPLITS = {"test": 6, "dev": 5, "train": 40}  # entries of each size
LEAST = 3

Triple = tuple[str, str, str]


@dataclass(frozen=True)
class World:
    """The facts: category of each entity, triples of each subject, wordings of (category, relation)."""

    category: dict[str, str]
    facts: dict[str, list[Triple]]
    wordings: dict[tuple[str, str], tuple[str, str]]

    @classmethod
    def read(cls, text: str) -> World:
        """Read the notation explained at the top of `facts.txt`."""
        world, current = cls({}, {}, {}), ""
        for line in filter(None, (row.split("#")[0].strip() for row in text.splitlines())):
            head, *rest = (part.strip() for part in line.split("|"))
            if line.startswith("["):
                current = line.strip("[]")
            elif not current:
                category, relation = head.split()
                world.wordings[category, relation] = (rest[0], rest[1])
            else:
                world.category[head] = current
                pairs = [part.partition(": ") for part in rest]
                world.facts[head] = [(head, relation, value) for relation, _, value in pairs]
        return world

    def clause(self, triple: Triple, wording: int) -> str:
        """The triple without its subject, in one of its wordings."""
        subject, relation, value = triple
        return self.wordings[self.category[subject], relation][wording].format(words(value))


@dataclass(frozen=True)
class Entry:
    """A set of facts that forms a tree below `root`, in depth-first order."""

    root: str
    triples: tuple[Triple, ...]

    def below(self, subject: str) -> list[Triple]:
        """The facts about `subject`."""
        return [triple for triple in self.triples if triple[0] == subject]

    def shape(self, subject: str) -> str:
        """The tree in brackets, small children first, as WebNLG writes it."""
        children = sorted((self.shape(value) for *_, value in self.below(subject)), key=lambda text: (len(text), text))
        return "(" + " ".join(["X", *children]) + ")"

    def shape_type(self) -> str:
        """NA for one triple, sibling under one subject, chain, or mixed."""
        subjects = [subject for subject, _, _ in self.triples]
        if len(subjects) == 1:
            return "NA"
        if len(set(subjects)) == 1:
            return "sibling"
        return "chain" if len(set(subjects)) == len(subjects) else "mixed"

    def symbols(self) -> set[str]:
        """What training must have shown: entities, values and relations."""
        return {item for triple in self.triples for item in triple}


def words(entity: str) -> str:
    """How an entity is written in a sentence."""
    return entity.replace("_", " ")


def enumerate_clauses(clauses: list[str]) -> str:
    """a, b and c."""
    return ", ".join(clauses[:-1]) + " and " + clauses[-1] if len(clauses) > 1 else clauses[0]


def choose_entry(world: World, size: int, used: Counter[Triple], chance: random.Random) -> Entry:
    """Grow a tree of `size` facts, the less used the likelier, that mentions nothing twice."""
    while True:
        root = chance.choice(list(world.facts))
        chosen: list[Triple] = []
        mentioned = {root}
        for _ in range(size):
            subjects = [entity for entity in world.facts if entity in mentioned]
            open_facts = [fact for subject in subjects for fact in world.facts[subject] if fact[2] not in mentioned]
            if not open_facts:
                break
            fact = chance.choices(open_facts, [(1 + used[fact]) ** -2 for fact in open_facts])[0]
            chosen.append(fact)
            mentioned.add(fact[2])
        if len(chosen) == size:
            used.update(chosen)
            return Entry(root, tuple(in_order(root, chosen)))


def in_order(subject: str, chosen: list[Triple]) -> list[Triple]:
    """Depth first; what leads on to other facts comes last, so that a relative clause can end the sentence."""
    leads_on = {other[0] for other in chosen}
    own = sorted((fact for fact in chosen if fact[0] == subject), key=chosen.index)
    leaves = [fact for fact in own if fact[2] not in leads_on]
    branches = [[fact, *in_order(fact[2], chosen)] for fact in own if fact[2] in leads_on]
    return leaves + [fact for branch in branches for fact in branch]


def with_relative_clause(entry: Entry, world: World) -> str:
    """A sentence about the root, its last value with a relative clause; the rest in sentences of its own."""
    sentences: list[str] = []
    done: set[str] = set()
    for subject in dict.fromkeys(triple[0] for triple in entry.triples):
        if subject in done:
            continue
        own = entry.below(subject)
        text = words(subject) + " " + enumerate_clauses([world.clause(triple, 0) for triple in own])
        value = own[-1][2]
        if entry.below(value):
            done.add(value)
            pronoun = "who" if world.category[value] == "Person" else "which"
            text += f", {pronoun} " + enumerate_clauses([world.clause(triple, 0) for triple in entry.below(value)])
        sentences.append(text + ".")
    return " ".join(sentences)


def sentence_by_sentence(entry: Entry, world: World) -> str:
    """One sentence for each subject, in the other wording."""
    subjects = dict.fromkeys(triple[0] for triple in entry.triples)
    clauses = {subject: [world.clause(triple, 1) for triple in entry.below(subject)] for subject in subjects}
    return " ".join(f"{words(subject)} {enumerate_clauses(clauses[subject])}." for subject in subjects)


def make_splits(world: World, chance: random.Random) -> dict[str, list[Entry]]:
    """A set of facts is in one split only, and training covers the others."""
    used: Counter[Triple] = Counter()
    seen: set[frozenset[Triple]] = set()
    splits: dict[str, list[Entry]] = {}
    for name, count in SPLITS.items():
        splits[name] = []
        for size in SIZES:
            while sum(len(entry.triples) == size for entry in splits[name]) < count:
                entry = choose_entry(world, size, used, chance)
                if frozenset(entry.triples) not in seen:
                    seen.add(frozenset(entry.triples))
                    splits[name].append(entry)
    check_coverage(splits)
    return {name: chance.sample(entries, len(entries)) for name, entries in splits.items()}


def check_coverage(splits: dict[str, list[Entry]]) -> None:
    """Refuse splits whose held-out entries name what training shows less than LEAST times."""
    shown = Counter(symbol for entry in splits["train"] for symbol in entry.symbols())
    held_out = [entry for name in ("dev", "test") for entry in splits[name]]
    rare = {symbol for entry in held_out for symbol in entry.symbols() if shown[symbol] < LEAST}
    if rare:
        raise SystemExit(f"training shows {sorted(rare)} less than {LEAST} times: raise SPLITS['train'] or change SEED")


def entry_xml(number: int, entry: Entry, world: World) -> str:
    """One <entry>."""
    texts = texts_of(number, entry, world)
    shape = f'shape="{entry.shape(entry.root)}" shape_type="{entry.shape_type()}"'
    rows = [f'    <entry category="{world.category[entry.root]}" eid="Id{number}" {shape} size="{len(entry.triples)}">']
    for block, tag in (("originaltripleset", "otriple"), ("modifiedtripleset", "mtriple")):
        rows.append(f"      <{block}>")
        rows += [f"        <{tag}>{escape(' | '.join(triple))}</{tag}>" for triple in entry.triples]
        rows.append(f"      </{block}>")
    rows += [f'      <lex comment="good" lid="Id{place}">{escape(text)}</lex>' for place, text in enumerate(texts, 1)]
    return "\n".join([*rows, "    </entry>"])


def texts_of(number: int, entry: Entry, world: World) -> list[str]:
    """The texts of an entry; every second has another wording as well."""
    texts = [with_relative_clause(entry, world)]
    return [*texts, sentence_by_sentence(entry, world)] if number % 2 else texts


def entry_rows(number: int, entry: Entry, world: World) -> list[str]:
    """The rows of a table: a fact in each, and the texts in the first ones; blanks in place of underscores."""
    texts, rows = texts_of(number, entry, world), max(len(entry.triples), 1 + number % 2)
    facts = [*entry.triples, *[("", "", "")] * (rows - len(entry.triples))]
    texts = [*texts, *[""] * (rows - len(texts))]
    return ["\t".join([str(number), *map(words, fact), text]) for fact, text in zip(facts, texts, strict=True)]


def main(folder: Path) -> None:
    """Make the six files in `folder`."""
    world = World.read((HERE / "facts.txt").read_text(encoding="utf-8"))
    for name, entries in make_splits(world, random.Random(SEED)).items():
        body = "\n".join(entry_xml(number, entry, world) for number, entry in enumerate(entries, 1))
        page = f"<?xml version='1.0' encoding='utf-8'?>\n<benchmark>\n  <entries>\n{body}\n  </entries>\n</benchmark>\n"
        (folder / f"{name}.xml").write_text(page, encoding="utf-8")
        rows = [row for number, entry in enumerate(entries, 1) for row in entry_rows(number, entry, world)]
        table = "\n".join(["id\tsubject\trelation\tobject\ttext", *rows])
        (folder / f"{name}.tsv").write_text(f"{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
