"""Files that were cut off, at every place: what is read is whole, and what was begun is an item or an error."""

from __future__ import annotations

import re

import pytest

from structpe.errors import StructPEError
from structpe.formats import read
from tests.together import together

TREE = "# sent_id = s{0}\n# text = It go\n1\tIt\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tgo\t_\tV\t_\t_\t0\troot\t_\tA=b\n\n"
ENTRY = (
    "<entry eid='{0}'><modifiedtripleset><mtriple>a | r{0} | b</mtriple></modifiedtripleset>"
    "<lex comment='good' lid='1'>Text {0}.</lex></entry>\n"
)
FILES = {
    "a.conllu": "".join(map(TREE.format, range(2))),
    "a.ptb": "(S (NP (DT The) (NN bird)) (VP (VBZ sings)))\n( (S (X a)\n    (Y b)))\n(S (A a))\n",
    "a.amr": '# ::id one\n# ::snt A b .\n(a / alpha~e.1 :ARG0 (b / beta))\n\n# ::id two\n(c / gamma :mod "x )")\n',
    "a.xml": "<benchmark><entries>\n" + "".join(map(ENTRY.format, range(2))) + "</entries></benchmark>\n",
    "a.g6": "DQc\nH?AAFFO\n&DI?AO?\n",
    "a.nt": '<http://a> <http://b> <http://c> .\n<http://d> <http://e> "f . "@en .\n_:x <http://e> _:y . # end\n',
    "a.ttl": '@prefix e: <http://x#> .\ne:a e:b "x#", """q " .\n . """ ; a e:C.\n# c .\ne:c e:p [ e:q ( 1 2 ) ] .\n',
    "a.trig": "@prefix e: <http://x#> .\ne:g { e:a e:b e:c . e:d e:e e:f }\ne:h { e:a e:b e:c . }\n",
    "a.n3": '@prefix e: <http://x#> .\ne:a e:b e:c .\ne:d e:e "f"@en .\n',
    "a.rdf": (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://x#">\n'
        '<rdf:Description rdf:about="http://a"><e:p>text</e:p></rdf:Description>\n</rdf:RDF>\n'
    ),
    "a.listops": "3\t[MAX 1 [MIN 3 4 ] 2 ]\n5\t5\n9\t[SM 4 5 ]\n",
}
"""Formats whose items say where they end."""
ENDS = {
    "a.nt": r"\.(?: # end)?\n?",
    "a.ttl": r"\.(?=\n)|(?<=\.)\n(?:# c \.?)?\n?",
    "a.trig": r"\}\n?",
    "a.n3": r"\.\n?",
}
LINES = {
    "a.tokens": "a bird sings\nit rests\nso\n",
    "a.tsv": "a\tr\tb\nb\ts\tc d\n",
    "a.smi": "CCO one\nc1ccccc1 two\nCC\n",
    "a.csv": 'id,smiles,x\n1,CCO,"a, b"\n2,CC,c\n',
    "a.scan": "IN: jump OUT: I_JUMP\nIN: jump twice OUT: I_JUMP I_JUMP\n",
    "a.cogs": "A b .\tx ( a )\tprimitive\nC d .\ty ( b )\tprimitive\n",
    "a.s6": ":Fa@x^\n:Fa@x^\n",
}
"""Formats whose items end with the line: the last may be shorter than it was, which nobody can tell."""


def told(item):
    """What an item says, without its number."""
    s = item.structure
    return (s.nodes, s.relations, s.edges.tolist(), s.root, item.texts)


def outcome(file, **options):
    """Items, and how many errors."""
    try:
        reading = read(file, on_error="skip", **options)
    except StructPEError:
        return [], 1
    return list(map(told, reading)), len(reading.skipped)


@pytest.mark.parametrize("name", [name for name in FILES if name not in ENDS])
def test_what_is_read_of_a_cut_file_is_whole_and_nothing_is_dropped_in_silence(write, name):
    text = FILES[name]
    whole, none = outcome(write(name, text))
    assert whole
    assert not none
    silent = []
    for cut in range(len(text)):
        items, errors = outcome(write(name, text[:cut]))
        assert items == whole[: len(items)], (cut, text[:cut])
        if not errors:
            silent.append(cut)
            assert begun(name, text[:cut]) == len(items), (cut, text[:cut])
    assert len(silent) <= 3 * len(whole), "errors are told nearly everywhere"


def begun(name, text):
    """How many items a text begins, by what stands at the beginning of each, if need be cut itself."""
    if name in ("a.conllu", "a.amr"):
        return len([block for block in text.split("\n\n") if block.strip()])
    if name == "a.ptb":
        return len([line for line in text.split("\n") if line.startswith("(")])
    if name in ("a.xml", "a.rdf"):
        return -1 if "</benchmark>" not in text and "</rdf:RDF>" not in text else text.count("<entry") or 1
    return len([line for line in text.split("\n") if line.strip()])


@pytest.mark.parametrize("name", ENDS)
def test_a_graph_of_statements_ends_where_a_statement_does(write, name):
    text = FILES[name]
    for cut in range(1, len(text)):
        _, errors = outcome(write(name, text[:cut]))
        at_an_end = any(
            found.end() == cut or found.start() < cut <= found.end() for found in re.finditer(ENDS[name], text)
        )
        assert errors or at_an_end, text[:cut]


@pytest.mark.parametrize("name", LINES)
def test_of_lines_none_is_dropped_in_silence(write, name):
    text = LINES[name]
    whole, _ = outcome(write(name, text))
    for cut in range(1, len(text)):
        items, errors = outcome(write(name, text[:cut]))
        lines = [line for line in text[:cut].split("\n") if line.strip()]
        if name == "a.tsv":
            assert errors or len(items[0][1]) == len(lines)
        else:
            assert len(items) + errors >= len(lines) - (name == "a.csv"), text[:cut]
            before = max(len(items) - 1, 0)
            assert items[:before] == whole[:before]


EVIDENCE = [
    (
        "a.smi",
        "CCO one\nc1ccccc1 two\nCC",
        r"line 3: the last line has no line feed .*, as it has no name, an",
    ),
    ("a.smi", "CCO one\nCC tw ", r"line 2: .*, as it ends in a blank"),
    ("a.scan", "IN: jump OUT: I_TURN_LE", r"line 1: .*, as 'I_TURN_LE' begins 'I_TURN_LEFT'"),
    ("a.scan", "IN: a OUT: I_B_C\nIN: a OUT: I_B_C I_B", r"line 2: .*, as 'I_B' begins 'I_B_C'"),
    ("a.scan", "IN: jump twice OUT: I_JUMP ", r"line 1: .*, as it ends in a blank"),
    ("a.cogs", "A b .\tx ( a )\tprimitive\nC d .\ty ( b )\tprim", r"line 2: .*, as 'prim' begins 'primitive'"),
    ("a.tsv", "New York\tin\tUSA\nBronx\tin\tNew Yo", r"line 2: .*, as 'New Yo' begins 'New York'"),
    ("a.tsv", "New York\tin\tUSA\nBronx\tin\tNew ", r"line 2: .*, as 'New' begins 'New York'"),
]


@together("name, text, message", EVIDENCE)
def test_a_last_line_that_shows_that_it_is_cut_off_is_an_error(write, name, text, message):
    with pytest.raises(StructPEError, match=message) as caught:
        read(write(name, text))
    assert "restore the file, or add a line feed if the line is complete" in str(caught.value)
    read(write(name, text + "\n"))  # as a whole line says that it is whole
    if name != "a.tsv" and "\n" in text:
        assert len(read(write(name, text), on_error="skip")) == text.count("\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.smi", "CCO\nCC"),
        ("a.smi", "CCO one\nCC\nC three\nCC"),
        ("a.scan", "IN: jump OUT: I_JUMP\nIN: run OUT: I_RUN"),
        ("a.cogs", "A b .\tx ( a )\tprimitive\nC d .\ty ( b )\tprimitive"),
        ("a.tsv", "New York\tin\tUSA\nUSA\tpart of\tAmerica"),
    ],
)
def test_a_last_line_without_its_end_is_read_where_nothing_tells_that_it_is_cut(write, name, text):
    """Many programs write no line feed at the end of a file."""
    assert told(read(write(name, text))[-1]) == told(read(write(name, text + "\n"))[-1])
