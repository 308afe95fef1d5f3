"""Write the sample of roles: sentences in which only the graph says who did what, with their AMR graphs.

    python make.py [folder]

The same seed gives the same bytes. Sentences of the test and development splits come in pairs. In the second sentence
of a pair two people have changed places, so the graph is another one with the same concepts and roles. A model that
sees these without the graph is right on one of the two at most. Training has none of these graphs, but it has each
person and each verb in each place.
"""

from __future__ import annotations

import random
import re
import sys
from itertools import permutations, product
from pathlib import Path

SEED = 3
TRAIN, PAIRS = 60, {"test": 3, "dev": 1}
"""Sentences of each scheme to learn from, and pairs of each that are held out."""
PEOPLE = ["baker", "boy", "doctor", "girl", "keeper", "miller", "painter", "sailor"]
VERBS = {"call": "called", "follow": "followed", "greet": "greeted", "help": "helped", "thank": "thanked"}
ALONE = {"sing": "sang", "sleep": "slept", "smile": "smiled"}
SCHEMES = {
    "the {a} {V} the {b} .": "([v] :ARG0 ([a]) :ARG1 ([b]))",
    "the {a} who {V} the {b} {I} .": "([i] :ARG0 ([a] :ARG0-of ([v] :ARG1 ([b]))))",
    "the {a} who was {V} by the {b} {I} .": "([i] :ARG0 ([a] :ARG1-of ([v] :ARG0 ([b]))))",
    "the {a} wanted to {v} the {b} .": "([want] :ARG0 ([a]) :ARG1 ([v] :ARG0 {a} :ARG1 ([b])))",
    "the {a} wanted to be {V} by the {b} .": "([want] :ARG0 ([a]) :ARG1 ([v] :ARG0 ([b]) :ARG1 {a}))",
    "the {a} wanted the {b} to {v} the {c} .": "([want] :ARG0 ([a]) :ARG1 ([v] :ARG0 ([b]) :ARG1 ([c])))",
    "the {a} {V} the {b} who {W} the {c} .": "([v] :ARG0 ([a]) :ARG1 ([b] :ARG0-of ([w] :ARG1 ([c]))))",
    "the {a} {V} the {b} who was {W} by the {c} .": "([v] :ARG0 ([a]) :ARG1 ([b] :ARG1-of ([w] :ARG0 ([c]))))",
    "the {a} who was {V} by the {b} {W} the {c} .": "([w] :ARG0 ([a] :ARG1-of ([v] :ARG0 ([b]))) :ARG1 ([c]))",
    "the {a} who {V} the {b} wanted to {w} the {c} .": (
        "([want] :ARG0 ([a] :ARG0-of ([v] :ARG1 ([b]))) :ARG1 ([w] :ARG0 {a} :ARG1 ([c])))"
    ),
}
"""Of sentences and graphs: a, b and c are people, v and w verbs with the past V and W, I is what one does alone; in a
graph, [x] is a new node and {x} one that is known."""


def every(scheme: str) -> list[dict[str, str]]:
    """All ways to fill a scheme."""
    names = "".join(name for name in "abc" if f"{{{name}}}" in scheme)
    done = permutations(VERBS, 2) if re.search("{[wW]}", scheme) else ((verb, verb) for verb in VERBS)
    alone = ALONE if "{I}" in scheme else ["sing"]
    return [
        {**dict(zip(names, people, strict=True)), "v": v, "w": w, "i": i, "want": "want"}
        for people, (v, w), i in product(permutations(PEOPLE, len(names)), done, alone)
    ]


def written(scheme: str, filled: dict[str, str]) -> str:
    """The sentence and its graph, in PENMAN notation."""
    known: dict[str, str] = {}

    def new(found: re.Match[str]) -> str:
        concept = filled[found[1]]
        same = sum(name[0] == concept[0] for name in known.values())
        known[found[1]] = f"{concept[0]}{same + 1 if same else ''}"
        return f"{known[found[1]]} / {concept}" + ("" if found[1] in "abc" else "-01")

    past = {"V": VERBS[filled["v"]], "W": VERBS[filled["w"]], "I": ALONE[filled["i"]]}
    graph = re.sub(r"\[(\w+)\]", new, SCHEMES[scheme])
    return f"# ::snt {scheme.format(**filled, **past)}\n{graph.format(**known)}\n"


def main(folder: Path) -> None:
    """Write the three files."""
    chance = random.Random(SEED)
    splits: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for scheme in SCHEMES:
        ways = every(scheme)
        chance.shuffle(ways)
        used: list[dict[str, str]] = []
        for split, count in PAIRS.items():
            for _ in range(count):
                filled = next(each for each in ways if each not in used)
                swapped = {**filled, "a": filled["b"], "b": filled["a"]}
                used += [filled, swapped]
                splits[split] += [written(scheme, filled), written(scheme, swapped)]
        left = [each for each in ways if each not in used]
        splits["train"] += [written(scheme, filled) for filled in left[:TRAIN]]
    chance.shuffle(splits["train"])
    for split, texts in splits.items():
        numbered = (f"# ::id roles.{split}.{number}\n{text}" for number, text in enumerate(texts, 1))
        (folder / f"{split}.txt").write_text("\n".join(numbered), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
