from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from structpe.errors import ReadError
from structpe.readers import read
from tests.corpora import corpus

ENTRY = """\
    <entry category="Airport" eid="Id{0}" size="2">
      <originaltripleset><otriple>x | y | z</otriple></originaltripleset>
      <modifiedtripleset>
        <mtriple>Aarhus_Airport | cityServed | "Aarhus, Denmark"</mtriple>
        <mtriple>Aarhus_Airport | elevation | Tom &amp; Jerry</mtriple>
      </modifiedtripleset>
      <lex comment="good" lid="Id1">Good &lt;text&gt;.</lex>
      <lex comment="toFix" lid="Id2"> Text to fix. </lex>
      <lex comment="good" lid="Id3"/>
    </entry>
"""


def document(*entries: str, head: str = "") -> str:
    return f"{head}<benchmark>\n  <entries>\n{''.join(entries)}  </entries>\n</benchmark>\n"


def test_an_entry_is_a_graph_with_its_texts(write):
    first, second = read(write("a.xml", document(ENTRY.format(1), ENTRY.format(2))))
    assert first.structure.nodes == ("Aarhus_Airport", '"Aarhus, Denmark"', "Tom & Jerry")
    assert first.structure.relations == ("cityServed", "elevation")
    assert first.texts == ("Good <text>.", "Text to fix.")
    assert first.metadata == {"category": "Airport", "eid": "Id1", "size": "2"}
    assert (second.id, second.structure.name) == ("Id2", "a.xml:Id2")


def test_texts_may_be_chosen_by_their_comment(write):
    assert read(write("a.xml", document(ENTRY)), comment="good")[0].texts == ("Good <text>.",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" | elevation | ", " | elevation: ", "a.xml: item 2: 'Id2': line 17: the triple 'Aarhus_Airport | elevation"),
        ("mtriple>", "other>", "a.xml: item 2: 'Id2': line 13: the entry has no <mtriple> in a <modifiedtripleset>"),
    ],
)
def test_a_bad_entry_is_named_and_skipped(write, old, new, message):
    file = write("a.xml", document(ENTRY.format(1), ENTRY.format(2).replace(old, new), ENTRY.format(3)))
    with pytest.raises(ReadError) as caught:
        read(file)
    assert message in str(caught.value)
    reading = read(file, on_error="skip")
    assert [item.id for item in reading] == ["Id1", "Id3"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<benchmark><entry></benchmark>", "line 1: not well-formed XML: mismatched tag; mend or restore the file"),
        (document(ENTRY)[:-20], "not well-formed XML: (no element found|unclosed token)"),
        ("not xml", "line 1: not well-formed XML: syntax error"),
        ("", "line 1: not well-formed XML: no element found"),
        (b"<benchmark>\n\xe9</benchmark>", r"line 2: not well-formed XML: not well-formed \(invalid token\)"),
        ("<?xml version='1.0' encoding='utf-88'?><a/>", "an encoding that cannot be read: .*; save it as UTF-8"),
        ("<a>&undefined;</a>", "not well-formed XML: undefined entity"),
    ],
)
def test_malformed_xml_is_named(write, content, message):
    with pytest.raises(ReadError, match=message):
        read(write("a.xml", content))


BOMB = '<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>\n'
OUTSIDE = '<!DOCTYPE x [<!ENTITY secret SYSTEM "file:///etc/passwd">]>\n'


@pytest.mark.parametrize("head", [BOMB, OUTSIDE, '<!DOCTYPE benchmark SYSTEM "http://example.org/x.dtd">\n'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_declarations_are_refused_in_any_encoding(write, head, encoding):
    content = document(ENTRY.replace("x | y | z", "&b;"), head=head).encode(encoding)
    with pytest.raises(ReadError, match=r"line 1: the XML declares a document type or entity \('\w+'\), which is"):
        read(write("a.xml", content))


def test_an_entry_across_the_pieces_of_a_large_file_is_whole(write):
    items = read(write("a.xml", document(*map(ENTRY.format, range(500)))))
    assert len({item.id for item in items}) == 500
    assert len({item.texts for item in items}) == 1


@pytest.mark.parametrize(
    ("path", "entries", "texts", "triples"),
    [
        ("challenge2017/train", 6940, 18102, 20458),
        ("challenge2017/dev", 872, 2268, 2563),
        ("challenge2017/test/testdata_with_lex.xml", 1862, 4928, 5378),
        ("challenge2017/test/testdata_no_lex.xml", 1862, 0, 5378),
        ("v3.0_en/en/dev", 1667, 4464, 4841),
    ],
)
def test_published_sizes(path, entries, texts, triples):
    items = read(corpus(f"webnlg/{path}"))
    assert len(items) == entries
    assert sum(len(item.texts) for item in items) == texts
    assert sum(len(item.structure.edges) for item in items) == triples


def test_a_file_agrees_with_elementtree():
    file = corpus("webnlg/challenge2017/dev/5triples/5triples_Airport_dev_challenge.xml")
    for item, entry in zip(read(file), ElementTree.parse(file).iter("entry"), strict=True):
        nodes, relations = item.structure.nodes, item.structure.relations
        facts = [f"{nodes[s]} | {r} | {nodes[t]}" for (s, t), r in zip(item.structure.edges, relations, strict=True)]
        assert facts == [triple.text for triple in entry.find("modifiedtripleset") or ()]
        assert item.texts == tuple(lex.text for lex in entry.findall("lex"))
