from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

import structpe.formats.text
from structpe.errors import ReadError
from structpe.formats import read
from tests.datasets import corpus

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
    assert first.metadata == {
        "category": "Airport",
        "eid": "Id1",
        "size": "2",
        "lexes": (
            {"comment": "good", "lid": "Id1", "text": "Good <text>."},
            {"comment": "toFix", "lid": "Id2", "text": "Text to fix."},
            {"comment": "good", "lid": "Id3", "text": ""},
        ),
        "original": (("x | y | z",),),
    }
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
        ("<benchmark><entry></benchmark>", "line 1: not well-formed XML: mismatched tag; correct or restore the file"),
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
        pytest.param("challenge2017/train", 6940, 18102, 20458, marks=pytest.mark.slow),
        pytest.param("challenge2017/dev", 872, 2268, 2563, marks=pytest.mark.slow),
        pytest.param("challenge2017/test/testdata_with_lex.xml", 1862, 4928, 5378, marks=pytest.mark.slow),
        pytest.param("challenge2017/test/testdata_no_lex.xml", 1862, 0, 5378, marks=pytest.mark.slow),
        ("challenge2017/test/testdata_unseen_with_lex.xml", 891, 2433, 2450),
        pytest.param("v3.0_en/en/dev", 1667, 4464, 4841, marks=pytest.mark.slow),
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
        assert facts == [triple.text for triple in entry.iterfind("modifiedtripleset/*")]
        assert item.texts == tuple(lex.text for lex in entry.findall("lex"))


RUSSIAN = """\
    <entry category="Airport" eid="Id1" shape="(X (X))" shape_type="NA" size="1">
      <originaltripleset><otriple>Aarhus | leaderName | J_B</otriple></originaltripleset>
      <originaltripleset><otriple>Aarhus | leader | J_B</otriple></originaltripleset>
      <modifiedtripleset><mtriple>Aarhus | leader | J_B</mtriple></modifiedtripleset>
      <lex comment="good" lang="en" lid="Id1">J B leads Aarhus.</lex>
      <lex comment="good" lang="ru" lid="Id1">Лидер Орхуса - Й Б.</lex>
      <lex comment="good" lid="Id2">Aarhus is led by J B.</lex>
      <dbpedialinks><dbpedialink direction="en2ru">Aarhus | sameAs | Орхус</dbpedialink></dbpedialinks>
      <links><link direction="en2ru">J_B | sameAs | Й Б</link></links>
    </entry>
"""


def test_version_3_has_languages_links_and_shapes(write):
    file = write("a.xml", document(RUSSIAN))
    (item,) = read(file)
    assert item.texts == ("J B leads Aarhus.", "Лидер Орхуса - Й Б.", "Aarhus is led by J B.")
    assert (item.metadata["shape"], item.metadata["shape_type"]) == ("(X (X))", "NA")
    assert item.metadata["original"] == (("Aarhus | leaderName | J_B",), ("Aarhus | leader | J_B",))
    assert item.metadata["dbpedialinks"] == (("en2ru", "Aarhus | sameAs | Орхус"),)
    assert item.metadata["links"] == (("en2ru", "J_B | sameAs | Й Б"),)
    assert read(file, lang="ru")[0].texts == ("Лидер Орхуса - Й Б.",)
    assert read(file, lang="en")[0].texts == ("J B leads Aarhus.", "Aarhus is led by J B.")
    assert read(file, lang="de")[0].texts == ()


ENRICHED = """\
    <entry category="Food" eid="Id5" size="2">
      <originaltripleset><otriple>Sauce | region | Lazio</otriple></originaltripleset>
      <modifiedtripleset>
        <otriple>Sauce | region | Lazio</otriple>
        <otriple>Sauce | country | Italy</otriple>
      </modifiedtripleset>
      <entitymap><entity>AGENT-1 | Sauce</entity><entity>PATIENT-1 | Lazio</entity></entitymap>
      <lex comment="good" lid="Id1">
        <sortedtripleset>
          <sentence ID="1"><striple>Sauce | region | Lazio</striple></sentence>
          <sentence ID="2"><striple>Sauce | country | Italy</striple></sentence>
        </sortedtripleset>
        <references>
          <reference entity="Lazio" number="1" tag="PATIENT-1" type="name">Lazio</reference>
        </references>
        <text>The sauce is from Lazio. It is Italian.</text>
        <template>AGENT-1 is from PATIENT-1 . AGENT-1 is Italian .</template>
        <lexicalization>DT[form=defined] the AGENT-1 VP be from PATIENT-1 .</lexicalization>
      </lex>
    </entry>
"""


def test_the_enriched_corpus_has_templates_and_references(write):
    (item,) = read(write("a.xml", document(ENRICHED)))
    assert item.structure.relations == ("region", "country")
    assert item.texts == ("The sauce is from Lazio. It is Italian.",)
    assert item.metadata["entities"] == (("AGENT-1", "Sauce"), ("PATIENT-1", "Lazio"))
    assert item.metadata["lexes"] == (
        {
            "comment": "good",
            "lid": "Id1",
            "text": "The sauce is from Lazio. It is Italian.",
            "template": "AGENT-1 is from PATIENT-1 . AGENT-1 is Italian .",
            "lexicalization": "DT[form=defined] the AGENT-1 VP be from PATIENT-1 .",
            "sentences": (("Sauce | region | Lazio",), ("Sauce | country | Italy",)),
            "references": ({"entity": "Lazio", "number": "1", "tag": "PATIENT-1", "type": "name", "text": "Lazio"},),
        },
    )


def test_xml_without_an_end_is_refused(write, monkeypatch):
    deep = "<entry>" + "<a>" * 200
    with pytest.raises(
        ReadError, match=r"a\.xml: line 1: elements are nested more than 100 deep; check that the reader"
    ):
        read(write("a.xml", deep))
    monkeypatch.setattr(structpe.formats.text, "LIMIT", 300_000)
    long = "x" * 400_000
    with pytest.raises(ReadError, match=r"line 1: a piece of the XML is longer than 300000 bytes"):
        read(write("a.xml", f"<benchmark><entry a='{long}'/></benchmark>"))
    with pytest.raises(ReadError, match=r"line 2: the <entry> is longer than 300000 bytes"):
        read(write("a.xml", f"<benchmark>\n<entry>{long}</entry></benchmark>"))
    many = "<lex>a</lex>" * 100_000
    with pytest.raises(ReadError, match=r"line 2: the <entry> is longer than 300000 bytes"):
        read(write("a.xml", f"<benchmark>\n<entry>{many}</entry></benchmark>"))


def test_an_entry_has_as_many_triples_as_its_size_says(write):
    text = (
        '<benchmark><entries><entry eid="1" size="{}"><modifiedtripleset><mtriple>a | r | b</mtriple>'
        "</modifiedtripleset></entry></entries></benchmark>"
    )
    assert len(read(write("a.xml", text.format(1)))) == 1
    with pytest.raises(
        ReadError, match="item 1: '1': line 1: the entry has 1 triples, but its size is '2'; correct or restore"
    ):
        read(write("a.xml", text.format(2)))
