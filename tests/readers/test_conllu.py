from __future__ import annotations

import conllu
import pytest

import structpe.formats.text
from structpe.errors import ReadError, StructureError
from structpe.formats import as_text, read
from tests.datasets import SAMPLES, corpus
from tests.representatives import only
from tests.together import together

AFRIKAANS = "AF-AfriBooms/af_afribooms-ud-dev"
SENTENCE = """\
# sent_id = s1
# text = Don't bark (dog)!
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\t_\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\t_\t_\t3\tadvmod\t_\t_
3\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_
3.1\tyou\tyou\tPRON\t_\t_\t_\t_\t3:nsubj\t_
4\tdog\tdog\tNOUN\t_\t_\t3\tvocative\t_\t_
5\t!\t!\tPUNCT\t_\t_\t3\tpunct\t_\t_
"""


def test_a_sentence_is_a_tree_with_spans(write):
    (item,) = read(write("a.conllu", SENTENCE + "\n"))
    assert item.id == "s1"
    assert item.structure.name == "a.conllu:s1"
    assert item.structure.nodes == ("Do", "n't", "bark", "dog", "!")
    assert item.structure.edges.tolist() == [[2, 0], [2, 1], [2, 3], [2, 4]]
    assert item.structure.relations == ("aux", "advmod", "vocative", "punct")
    text = item.metadata["text"]
    assert [text[a:b] for a, b in item.structure.features["span"]] == list(item.structure.nodes)
    assert item.metadata["upos"] == ("AUX", "PART", "VERB", "NOUN", "PUNCT")
    assert item.metadata["xpos"] == ("_",) * 5
    assert item.metadata["space_after"] == (False, True, True, True, True)
    assert (item.metadata["multiword_tokens"], item.metadata["empty_nodes"]) == (1, 1)


def test_a_word_that_the_text_lacks_has_no_span(write):
    (item,) = read(write("a.conllu", SENTENCE.replace("(dog)", "(cat)") + "\n"))
    assert item.structure.features["span"][3].tolist() == [-1, -1]
    assert item.structure.features["span"][4].tolist() == [16, 17]


@pytest.mark.parametrize(
    ("whole", "words", "parts"),
    [
        ("don't", ("do", "n't"), ["do", "n't"]),
        ("abychom", ("aby", "bychom"), ["aby", "chom"]),
        ("zum", ("zu", "dem"), ["zu", "m"]),
        ("wanna", ("want", "na"), ["wan", "na"]),
        ("aby", ("aby", "by"), ["aby", "aby"]),
        ("au", ("à", "le"), ["au", "au"]),
        ("dámelo", ("da", "me", "lo"), ["dámelo"] * 3),
    ],
)
def test_words_of_a_range_have_their_part_of_it(write, whole, words, parts):
    rows = [f"1-{len(words)}\t{whole}" + "\t_" * 8]
    rows += [f"{i}\t{word}\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_" for i, word in enumerate([*words, words[-1]], 1)]
    text = f"{whole} {words[-1]}"
    (item,) = read(write("a.conllu", "\n".join([f"# text = {text}", *rows]) + "\n\n"))
    assert [text[a:b] for a, b in item.structure.features["span"]] == [*parts, words[-1]]


@together(
    "old, new, error, message",
    [
        ("4\tdog", "3\tdog", ReadError, "a.conllu: item 2: 's1': line 19: 'dog' has id 3; ids count 1, 2, 3, ..."),
        (
            "4\tdog\tdog\tNOUN\t_\t_\t3",
            "4\tdog\tdog\tNOUN\t_\t_\tx",
            ReadError,
            "a.conllu: item 2: 's1': line 19: HEAD of 'dog' is 'x'; give the number of a word, or 0 for the root",
        ),
        (
            "4\tdog\tdog\tNOUN\t_\t_\t3",
            "4\tdog\tdog\tNOUN\t_\t_\t_",
            StructureError,
            "a.conllu: item 2: 's1': line 12: the head of token 4 ('dog') is None",
        ),
        ("_\t_\t0\troot", "_\t_\t4\troot", StructureError, "3 ('bark') -> 4 ('dog') -> 3 ('bark')"),
        (
            "4\tdog\tdog\tNOUN\t_\t_\t3\tvocative\t_\t_",
            "4\tdog\tdog",
            ReadError,
            "line 19: the line has 3 fields, CoNLL-U h",
        ),
        ("5\t!", "five\t!", ReadError, "line 20: 'five' is not an id; ids are 3, 3-4 or 3.1"),
        (
            "4\tdog\tdog\tNOUN\t_\t_\t3\tvocative\t_\t_",
            "dog",
            ReadError,
            "line 19: the line has 1 fields, CoNLL-U has ten separated",
        ),
        ("4\tdog", "4  dog", ReadError, "line 19: the line has 9 fields"),
        ("4\tdog", "04\tdog", ReadError, "line 19: '04' is not an id"),
        ("4\tdog", "\uff14\tdog", ReadError, "line 19: '\uff14' is not an id"),
        ("4\tdog", f"{'9' * 5000}\tdog", ReadError, "is not an id; ids are 3, 3-4 or 3.1"),
        ("4\tdog", "4\t", ReadError, "line 19: FORM is empty; write _ for an empty field"),
        ("3\tvocative", "3\t", ReadError, "line 19: DEPREL is empty; write _ for"),
        ("1-2\t", "2-3\t", ReadError, "line 14: the range 2-3 is before word 1; a range must be before"),
        ("1-2\t", "1-9\t", ReadError, "line 14: the range 1-9 ends after the last word, 5; give it existing"),
        ("1-2\t", "2-1\t", ReadError, "line 14: the range 2-1 is before word 1"),
        (
            "1\tDo\t",
            "0.1\tDo\t",
            ReadError,
            "line 15: 0.1 follows the range 1-2, which must be followed by its first word",
        ),
        ("3.1\t", "3.2\t", ReadError, "line 18: the empty node 3.2 is after word 3; empty nodes count 3.1, ..."),
        ("3.1\t", "2.1\t", ReadError, "line 18: the empty node 2.1 is after word 3"),
        ("4\tdog", "# late\n4\tdog", ReadError, "line 19: a comment is between words; move it before the first"),
    ],
)
def test_a_bad_sentence_is_named_and_skipped(write, old, new, error, message):
    file = write("a.conllu", f"{SENTENCE}\n\n{SENTENCE.replace(old, new)}\n{SENTENCE}\n")
    with pytest.raises(error) as caught:
        read(file)
    assert message in str(caught.value)
    reading = read(file, on_error="skip")
    assert (len(reading), len(reading.skipped)) == (2, 1)


def test_a_last_sentence_without_its_blank_line_may_be_cut_off(write):
    # Without its last two words the sentence is a tree still.
    cut = "\n".join(SENTENCE.splitlines()[:-2]) + "\n"
    for content in (f"{SENTENCE}\n{cut}", f"{SENTENCE}\n{cut}".rstrip("\n"), f"{SENTENCE}\n{SENTENCE}"):
        file = write("a.conllu", content)
        with pytest.raises(ReadError) as caught:
            read(file)
        assert str(caught.value) == (
            f"{file}: item 2: 's1': line 11: the file ends without a blank line after this sentence, so it may be "
            "truncated; restore the file, or, if the sentence is complete, add the line or give strict=False"
        )
        reading = read(file, on_error="skip")
        assert (len(reading), len(reading.skipped)) == (1, 1)
        kept = read(file, strict=False)
        assert (len(kept), kept[1].metadata["ended"], "ended" in kept[0].metadata) == (2, False, False)
    for content in (f"{SENTENCE}\n", f"{SENTENCE}\n\n \n", f"{SENTENCE}\r\n", f"{SENTENCE} \t"):
        assert len(read(write("a.conllu", content))) == 1


def test_what_is_wrong_with_a_cut_sentence_comes_first(write):
    with pytest.raises(ReadError, match="line 9: the line has 4 fields"):
        read(write("a.conllu", SENTENCE[: SENTENCE.rindex("PUNCT") + 2]), strict=False)


def test_a_sentence_of_comments_only_is_empty(write):
    with pytest.raises(StructureError, match="the sentence has no token"):
        read(write("a.conllu", "# sent_id = s1\n"))


def test_the_sample_has_what_its_card_says():
    items = read(SAMPLES / "trees_sample" / "sample.conllu")
    assert sum(item.metadata["multiword_tokens"] for item in items) == 2
    assert sum(item.metadata["empty_nodes"] for item in items) == 1
    assert {item.structure.size for item in items} >= {1, 45}


@pytest.mark.parametrize(
    ("file", "sentences", "words"),
    [
        pytest.param("EWT/en_ewt-ud-dev", 2001, 25147, marks=pytest.mark.slow),
        ("CS-CLTT/cs_cltt-ud-dev", 316, 10710),
        (AFRIKAANS, 194, 5317),
    ],
)
def test_real_treebanks(file, sentences, words):
    items = read(corpus(f"ud/{file}.conllu"))
    assert (len(items), sum(item.structure.size for item in items)) == (sentences, words)
    assert sum(len(item.structure.edges) for item in items) == words - sentences
    for item in items[:200]:
        text = item.metadata["text"]
        ranged = {int(n) for first, *_ in item.metadata["ranges"] for n in range(*_bounds(first))}
        for number, (word, (start, end)) in enumerate(
            zip(item.structure.nodes, item.structure.features["span"], strict=True), 1
        ):
            assert start < 0 or text[start:end] == word or number in ranged


def _bounds(id):
    first, last = map(int, id.split("-"))
    return first, last + 1


ENHANCED = """\
1\tSue\t_\tPROPN\t_\t_\t2\tnsubj\t2:nsubj|3:nsubj\t_
2\tlikes\t_\tVERB\t_\t_\t0\troot\t0:root\t_
3\tknows\t_\tVERB\t_\t_\t2\tconj\t0:root|2:conj:and\t_
3.1\twell\t_\tADV\t_\t_\t_\t_\t3:advmod|1:odd\t_
4\tit\t_\tPRON\t_\t_\t_\t_\t4:self\t_
"""


def test_enhanced_dependencies_are_a_digraph(write):
    (item,) = read(write("a.conllu", ENHANCED + "\n"), graph="enhanced")
    graph = item.structure
    assert graph.nodes == ("Sue", "likes", "knows", "well", "it")
    assert graph.edges.tolist() == [[1, 0], [2, 0], [1, 2], [2, 3], [0, 3], [4, 4]]
    assert graph.relations == ("nsubj", "nsubj", "conj:and", "advmod", "odd", "self")
    assert graph.features["is_empty"].tolist() == [False, False, False, True, False]
    assert graph.features["is_root"].tolist() == [False, True, True, False, False]
    assert (graph.root, graph.order.tolist()) == (1, [0, 1, 2, 3, 4])
    assert item.metadata["head"] == ("2", "0", "2", "_", "_")
    assert item.metadata["deprel"] == ("nsubj", "root", "conj", "_", "_")
    assert item.metadata["upos"] == ("PROPN", "VERB", "VERB", "ADV", "PRON")


def test_empty_nodes_have_no_place_in_the_text(write):
    (item,) = read(write("a.conllu", "# text = Sue likes, knows it.\n" + ENHANCED + "\n"), graph="enhanced")
    assert item.structure.features["span"].tolist() == [[0, 3], [4, 9], [11, 16], [-1, -1], [17, 19]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3:advmod", "7:advmod", "line 4: 'well' has the head 7, but there is no such node; heads are ids, or 0 for"),
        ("3:advmod", "3", "line 4: DEPS of 'well' is '3|1:odd'; write head:relation, separated by '|', or _"),
        ("3:advmod", "1-2:advmod", "line 4: DEPS of 'well' is '1-2:advmod|1:odd'"),
    ],
)
def test_bad_enhanced_dependencies_are_named(write, old, new, message):
    with pytest.raises(ReadError) as caught:
        read(write("a.conllu", ENHANCED.replace(old, new)), graph="enhanced")
    assert message in str(caught.value)


def test_a_sentence_without_enhanced_dependencies_says_so(write):
    with pytest.raises(ReadError, match=r"no enhanced dependencies \(DEPS is _ .*\); read it with graph='basic'"):
        read(SAMPLES / "trees_sample" / "sample.conllu", graph="enhanced")
    with pytest.raises(ReadError, match="'graph' of reader 'conllu' takes one of 'basic', 'enhanced'; given is 'deps'"):
        read(write("a.conllu", SENTENCE), graph="deps")


def test_fields_and_lines_that_are_no_nodes_are_kept(write):
    (item,) = read(write("a.conllu", SENTENCE + "\n"))
    assert item.metadata["lemma"] == ("do", "not", "bark", "dog", "!")
    assert item.metadata["misc"] == ("_",) * 5
    assert item.metadata["ranges"] == (("1-2", "Don't", *["_"] * 8),)
    assert item.metadata["empty"] == (("3.1", "you", "you", "PRON", "_", "_", "_", "_", "3:nsubj", "_"),)
    assert item.metadata["comments"] == ("# sent_id = s1", "# text = Don't bark (dog)!")
    assert item.metadata["root_relation"] == "root"


def test_ids_may_repeat_and_are_told(write):
    reading = read(write("a.conllu", f"{SENTENCE}\n{SENTENCE}\n{SENTENCE.replace('s1', 's2')}\n"))
    assert reading.duplicates == ["s1"]


def test_lines_and_sentences_without_an_end_are_refused(write, monkeypatch):
    monkeypatch.setattr(structpe.formats.text, "LIMIT", 600)
    file = write("a.conllu", SENTENCE + "\n" + SENTENCE.replace("dog\tdog", f"dog\t{'x' * 700}"))
    with pytest.raises(ReadError, match=r"a\.conllu: line 18: the line is longer than 600 bytes, too long for a graph"):
        read(file)
    reading = read(file, on_error="skip")
    assert len(reading) == 1
    assert reading.skipped[0].message.endswith("(nothing after this was read from the file)")
    lines = SENTENCE.splitlines()[2:] * 4
    with pytest.raises(ReadError, match=r"line 1: the item, up to a blank line, is longer than 600 bytes"):
        read(write("b.conllu", "\n".join(lines)))


@pytest.mark.parametrize("file", only([AFRIKAANS, "CS-CLTT/cs_cltt-ud-dev"], AFRIKAANS))
def test_a_treebank_agrees_with_the_conllu_library(file):
    path = corpus(f"ud/{file}.conllu")
    for item, rows in zip(read(path), conllu.parse(path.read_text(encoding="utf-8")), strict=True):
        words = [row for row in rows if isinstance(row["id"], int)]
        assert item.structure.nodes == tuple(row["form"] for row in words)
        assert item.metadata["lemma"] == tuple(row["lemma"] for row in words)
        heads = {target: source + 1 for source, target in item.structure.edges.tolist()}
        assert [heads.get(place, 0) for place in range(len(words))] == [row["head"] for row in words]
        assert list(item.structure.relations) == [row["deprel"] for row in words if row["head"]]
        assert rows.metadata.items() <= item.metadata.items()


def test_a_comment_owns_the_rest_of_its_line(write):
    words = "1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    comments = "# sent_id_old = no\n#sent_id = one # sent_id = two\n# text = a = b # sent_id = c\n# sent_id = three\n"
    item = read(write("a.conllu", comments + words))[0]
    assert item.id == item.metadata["sent_id"] == "one # sent_id = two"
    assert item.metadata["text"] == "a = b # sent_id = c"
    assert as_text(item, "conllu") == comments + words
