from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from structpe.errors import StructureError
from structpe.formats import read, stream
from structpe.formats.amr import graph
from structpe.structure import Structure, path
from structpe.transforms.units import Gap, split
from tests.datasets import SAMPLES, corpus
from tests.representatives import only

TEXTS = ["the dog barks and does not bark", "dogs don't bark (much)!", "want-01 boy go-02"] * 3


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    return tokenizer


def word_piece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=60, special_tokens=["[UNK]", "[CLS]"]))
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 1)])
    return tokenizer


def unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=60, special_tokens=["<unk>"], unk_token="<unk>")
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def word_level() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "dog": 1}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def few_letters(unknown: str | None = None) -> Tokenizer:
    """BPE without bytes: what is not in its vocabulary vanishes."""
    vocabulary = {"a": 0, "b": 1} | ({unknown: 2} if unknown else {})
    return Tokenizer(models.BPE(vocabulary, []))


SHORT = ("amr_sample/test.txt", "trees_sample/sample.conllu")
KINDS = {"byte": byte_level(), "wordpiece": word_piece(), "unigram": unigram(), "wordlevel": word_level()}


def spelling(structure, node):
    units = zip(structure.unit_texts, structure.unit_owner, strict=True)
    return "".join(unit for unit, owner in units if owner == node)


def sentence(text, tmp_path):
    file = tmp_path / "a.tokens"
    file.write_text(text, encoding="utf-8")
    (item,) = read(file, "tokens").items
    return item.structure


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_split_one_by_one(kind):
    tokenizer, structure = KINDS[kind], graph("(w / want-01 :ARG0 (b / boy) :ARG1 (d / dog :mod (m / über)))")
    made = split(structure, tokenizer)
    expected = [tokenizer.encode(label, add_special_tokens=False) for label in structure.nodes]
    assert made.structure.units == tuple(unit for each in expected for unit in each.tokens)
    assert made.ids.tolist() == [id for each in expected for id in each.ids]
    assert made.structure.unit_owner.tolist() == [node for node, each in enumerate(expected) for _ in each.ids]
    assert made.report.complete
    assert str(made.report) == "every unit has one node, every node a unit"
    assert made.structure.nodes == structure.nodes


@pytest.mark.parametrize("kind", KINDS)
@given(label=st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=5))
def test_every_node_owns_a_unit_and_what_is_lost_is_said(kind, label):
    tokenizer, structure = KINDS[kind], path(label)
    if any(not tokenizer.encode(each, add_special_tokens=False).ids for each in label) and kind == "byte":
        with pytest.raises(StructureError, match="gets no unit from the tokenizer"):
            split(structure, tokenizer)
        return
    made = split(structure, tokenizer)
    assert set(made.structure.unit_owner.tolist()) == set(range(structure.size))
    assert len(made.ids) == made.structure.unit_count
    for unit, id in zip(made.structure.unit_texts, made.ids, strict=True):
        assert tokenizer.id_to_token(id) == unit or kind in ("unigram", "wordlevel")
    for node, start, text in made.report.gaps:
        assert structure.nodes[node][start : start + len(text)] == text


def test_a_sentence_is_split_whole_and_aligned_by_offset(tmp_path):
    structure = sentence("the dogs  don't 🐕 bark", tmp_path)
    made = split(structure, KINDS["byte"], text="the dogs  don't 🐕 bark")
    words = [spelling(made.structure, node) for node in range(5)]
    assert [words[i] for i in (0, 1, 2, 4)] == ["the", "Ġdogs", "Ġdon't", "Ġbark"]
    assert len(words[3]) == 4 + ("Ġ" in words[3])
    assert made.report.complete


def test_words_of_a_real_sentence_join_to_their_units(tmp_path):
    file = corpus("ud/EWT/en_ewt-ud-dev.conllu")
    for item in islice(stream(file), 60):
        made = split(item.structure, KINDS["byte"], text=item.metadata["text"])
        assert not made.report.missing
        assert not made.report.dropped
        assert not made.report.gaps
        shared = {node for _, *nodes in made.report.shared for node in nodes}
        for node, word in enumerate(item.structure.nodes):
            if word.isascii() and node not in shared:
                assert spelling(made.structure, node).removeprefix("Ġ") == word


def test_a_unit_across_a_border_goes_to_the_node_it_covers_most():
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "don't": 1, "bark": 2}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    structure = path(["d", "on't", "bark"])
    structure = Structure(structure.nodes, structure.edges, features={"span": [[0, 1], [1, 5], [6, 10]]}, name="x")
    made = split(structure, tokenizer, text="don't bark !")
    assert made.structure.units == ("<unk>", "don't", "bark")
    assert made.ids.tolist() == [0, 1, 2]
    assert made.report.shared == (("don't", 1, 0),)
    assert made.report.missing == (0,)
    assert made.report.dropped == ("<unk>",)
    assert str(made.report) == (
        "1 nodes without a unit: 0; 1 units across a border: \"don't\"; 1 units in no node: '<unk>'"
    )
    with pytest.raises(StructureError, match=r"x: node 0 \('d'\) gets no unit from the tokenizer; give it another"):
        split(structure, tokenizer, text="don't bark !", missing="error")


def test_characters_in_no_unit_are_reported(tmp_path):
    made = split(path(["abxy", "b z"]), few_letters())
    assert made.structure.units == ("a", "b", "b")
    assert made.report.gaps == (Gap(0, 2, "xy"), Gap(1, 2, "z"))
    assert str(made.report) == "2 pieces of text in no unit: 'xy', 'z'"
    by_words = few_letters()
    by_words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = split(sentence("ax b", tmp_path), by_words, text="ax b")
    assert made.report.gaps == (Gap(-1, 1, "x"),)


def test_a_node_without_a_unit_needs_an_unknown_token():
    with pytest.raises(StructureError, match=r"x: node 1 \('x'\) gets no unit .*, which has no unknown token either"):
        split(path(["a", "x"], name="x"), few_letters())
    for kind, unknown in (("wordpiece", "[UNK]"), ("unigram", "<unk>"), ("wordlevel", "<unk>")):
        made = split(path(["dog", ""]), KINDS[kind])
        assert made.structure.unit_texts[-1] == unknown
        assert made.ids[-1] == KINDS[kind].token_to_id(unknown)
        assert made.report.missing == (1,)


def test_padding_gives_no_units():
    tokenizer = byte_level()
    expected = split(path(["dog", "the dog barks"]), tokenizer).structure.units
    tokenizer.enable_padding(length=50)
    assert split(path(["dog", "the dog barks"]), tokenizer).structure.units == expected


def test_truncation_is_refused():
    tokenizer = byte_level()
    tokenizer.enable_truncation(4)
    with pytest.raises(StructureError, match=r"truncates to 4 units, .* call its no_truncation\(\) first"):
        split(path(["dog"]), tokenizer)


def test_a_text_needs_spans():
    with pytest.raises(StructureError, match="x: the structure has no feature 'span', the character offsets"):
        split(path(["dog"], name="x"), byte_level(), text="dog")


def test_units_follow_the_numbers_of_the_nodes_whatever_the_text_says():
    structure = Structure(("dog", "the"), [[0, 1]], features={"span": [[4, 7], [0, 3]]})
    made = split(structure, KINDS["byte"], text="the dog")
    assert made.structure.unit_owner.tolist() == sorted(made.structure.unit_owner.tolist())
    assert made.structure.unit_texts[-1] == "the"


@pytest.mark.parametrize("file", only(["amr_sample/train.txt", "kg_sample/train.xml", *SHORT], *SHORT))
def test_the_samples_are_split_without_a_loss(file):
    for structure in read(SAMPLES / file).structures:
        assert split(structure, KINDS["byte"]).report.complete
