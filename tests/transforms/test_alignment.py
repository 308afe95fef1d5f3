"""Alignment of subwords with words by character offset: what users' texts hold, against three kinds of tokenizers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from structpe.errors import StructPEError
from structpe.formats import read
from structpe.structure import Structure
from structpe.transforms import split
from structpe.transforms.units import TokenizedStructure
from tests.datasets import SAMPLES

ITEMS = read(SAMPLES / "trees_sample" / "sample.conllu")
TEXTS = [str(item.metadata["text"]) for item in ITEMS]


def pieces() -> Tokenizer:
    """As uncased BERT."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([*TEXTS, "i fi e don ' t"], trainer)
    around = [(token, tokenizer.token_to_id(token)) for token in special[1:]]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=around)
    return tokenizer


def unigram() -> Tokenizer:
    """As T5."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def bytes_() -> Tokenizer:
    """As GPT-2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([*TEXTS, 'a (b). (c). "d."'] * 2, trainer)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


KINDS = {"pieces": pieces(), "unigram": unigram(), "bytes": bytes_()}


def words(text: str, *spans: tuple[int, int]) -> Structure:
    """A path of the words that stand there."""
    size = len(spans)
    edges = [(i, i + 1) for i in range(size - 1)]
    nodes = tuple(text[a:b] or "-" for a, b in spans)
    return Structure(
        nodes, np.array(edges).reshape(-1, 2).astype(int), order=np.arange(size), features={"span": np.array(spans)}
    )


def by_blanks(text: str) -> Structure:
    """A path of the words between blanks."""
    spans, at = [], 0
    for word in text.split(" "):
        if word:
            spans.append((at, at + len(word)))
        at += len(word) + 1
    return words(text, *spans)


def owned(made: TokenizedStructure, node: int) -> list[str]:
    return [
        unit for unit, owner in zip(made.structure.unit_texts, made.structure.unit_owner, strict=True) if owner == node
    ]


def assert_sound(structure: Structure, text: str, made: TokenizedStructure) -> None:
    """Every unit is owned by a word that it overlaps, or is of blanks, or stands for a word that has none."""
    spans = np.asarray(structure.features["span"])
    stand_ins = 0
    for unit, owner, (start, end) in zip(made.structure.unit_texts, made.structure.unit_owner, made.spans, strict=True):
        if start < 0:
            stand_ins += 1
            assert int(owner) in made.report.missing, unit
            continue
        overlap = min(spans[owner, 1], max(end, start + 1)) - max(spans[owner, 0], start)
        assert overlap > 0 or not text[start:end].strip(), unit
        rivals = np.minimum(spans[:, 1], max(end, start + 1)) - np.maximum(spans[:, 0], start)
        assert overlap == rivals.max() or not text[start:end].strip(), unit
        others = set(np.flatnonzero(rivals > 0).tolist()) - {int(owner)}
        assert {(unit, int(owner), other) for other in others} <= set(made.report.shared)
    assert stand_ins == len(made.report.missing) or not stand_ins


@pytest.mark.parametrize("kind", KINDS)
@given(
    text=st.text(
        st.characters(exclude_categories=["Cs"]) | st.sampled_from("ab .'\u200b\ufeff\u00adﬁİé🚀\u200d👩"), max_size=20
    ),
    data=st.data(),
)
def test_no_unit_is_misassigned(kind: str, text: str, data: st.DataObject) -> None:
    cuts = sorted(
        data.draw(st.sets(st.integers(0, len(text)), min_size=2, max_size=8) if len(text) > 1 else st.just({0, 1}))
    )
    chosen = [pair for pair in pairwise(cuts) if data.draw(st.booleans())] or [(cuts[0], cuts[1])]
    structure = words(text, *chosen)
    given = KINDS[kind].encode(text, add_special_tokens=False)
    # No unit for any word is an error.
    assume(any(a < max(end, start + 1) and start < b for start, end in given.offsets for a, b in chosen))
    made = split(structure, KINDS[kind], text, missing="none", blanks="keep")
    assert_sound(structure, text, made)
    report = made.report
    assert made.structure.unit_count + len(report.dropped) == len(given.ids)
    assert set(report.missing) == set(range(structure.size)) - set(made.structure.unit_owner.tolist())
    if not (report.dropped or report.moved):
        assert made.ids.tolist() == given.ids
    free = np.ones(len(text), dtype=bool)
    for start, end in given.offsets:
        free[start:end] = False
    lost = sorted(place for place in np.flatnonzero(free) if not text[place].isspace())
    assert sorted(gap.start + k for gap in report.gaps for k in range(len(gap.text))) == lost


@pytest.mark.parametrize("kind", KINDS)
def test_the_sample_is_what_the_tokenizer_gives(kind: str) -> None:
    for item in ITEMS:
        text = str(item.metadata["text"])
        made = split(item.structure, KINDS[kind], text, missing="none", blanks="keep")
        assert_sound(item.structure, text, made)
        assert made.ids.tolist() == KINDS[kind].encode(text, add_special_tokens=False).ids
        assert not made.report.gaps
        assert not made.report.dropped


def test_a_contraction_that_is_one_unit_goes_to_the_first_word_it_covers_most() -> None:
    text = "don't"
    one = Tokenizer(models.WordLevel({"<unk>": 0, "don't": 1}, unk_token="<unk>"))
    made = split(words(text, (0, 2), (2, 5)), one, text, missing="none")
    assert owned(made, 1) == ["don't"]
    assert made.report.shared == (("don't", 1, 0),)
    assert made.report.missing == (0,)
    assert str(made.report) == '1 nodes without a unit: 0; 1 units across a border: "don\'t"'
    apart = split(words(text, (0, 2), (2, 5)), KINDS["pieces"], text, missing="none")
    assert "".join(owned(apart, 1)).replace("##", "").endswith("'t")


def test_where_no_word_has_a_unit_all_are_unknown() -> None:
    made = split(words("\u200b a", (0, 1)), KINDS["pieces"], "\u200b a", missing="none")
    assert made.structure.units == ("[UNK]",)
    assert made.report.missing == (0,)


def test_a_bracket_and_a_full_stop_are_one_unit_of_bytes() -> None:
    text = "(b)."
    made = split(words(text, (0, 1), (1, 2), (2, 3), (3, 4)), KINDS["bytes"], text, missing="none")
    assert made.structure.units == ("(", "b", ").")
    assert made.report.missing == (3,)
    assert made.report.shared == ((").", 2, 3),)
    with pytest.raises(StructPEError, match=r"no unknown token either; give it one, .* or allow missing='none'"):
        split(words(text, (0, 1), (1, 2), (2, 3), (3, 4)), KINDS["bytes"], text)


@pytest.mark.parametrize("mark", ["\u200b", "\ufeff", "\u00ad", "\u200d"])
def test_characters_without_width(mark: str) -> None:
    text = f"{mark}lamp l{mark}it {mark} dusk{mark}"
    structure = by_blanks(text)
    for kind, tokenizer in KINDS.items():
        made = split(structure, tokenizer, text, missing="none", blanks="keep")
        assert_sound(structure, text, made)
        plain = "".join(owned(made, 3)).replace("##", "").removeprefix("Ġ").removeprefix("▁")
        assert plain.startswith("dusk"), kind
    made = split(structure, KINDS["pieces"], text)  # BERT removes them
    assert made.report.missing == (2,)
    assert owned(made, 2) == ["[UNK]"]
    assert {gap.text for gap in made.report.gaps} == {mark}
    assert not made.report.complete


def test_normalised_characters_keep_their_place() -> None:
    text = "ﬁé İi ½ …x"
    structure = by_blanks(text)
    made = split(structure, KINDS["unigram"], text, missing="none", blanks="keep")
    assert_sound(structure, text, made)
    assert "".join(owned(made, 0)) == "▁fié"
    assert "".join(owned(made, 2)).replace("▁", "") in (
        "1⁄2",
        "½",
        "1<unk>2",
        "<unk>",
        "1/2",
        "1⁄2".replace("⁄", "<unk>"),
    )
    assert "".join(owned(made, 3)).replace("▁", "") == "...x"
    lower = split(structure, KINDS["pieces"], text, missing="none")
    assert_sound(structure, text, lower)
    # İ becomes two characters, one of them an accent, which is stripped; what follows stands where it stood.
    assert [text[a:b] for a, b in lower.spans[lower.structure.unit_owner == 1]][-1].endswith("i")
    assert lower.report.missing == ()


@pytest.mark.parametrize("kind", KINDS)
def test_one_character_of_several_units(kind: str) -> None:
    text = "a 👩\u200d🚀 b"
    structure = by_blanks(text)
    made = split(structure, KINDS[kind], text, missing="none", blanks="keep")
    assert_sound(structure, text, made)
    assert owned(made, 0)
    assert owned(made, 2)
    if kind == "bytes":
        raw = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str("👩\u200d🚀")[0][0]
        assert "".join(owned(made, 1)).removeprefix("Ġ") == raw
        cut = words(text, (0, 1), (2, 3), (3, 5), (6, 7))  # between the characters of one emoji
        assert_sound(cut, text, split(cut, KINDS[kind], text, missing="none", blanks="keep"))


def test_blanks_are_kept_or_told() -> None:
    text = " lamp  lit  "
    structure = words(text, (1, 5), (7, 10))
    told = split(structure, KINDS["bytes"], text)
    kept = split(structure, KINDS["bytes"], text, blanks="keep")
    assert kept.ids.tolist() == KINDS["bytes"].encode(text).ids
    assert len(told.ids) + len(told.report.blanks) == len(kept.ids)
    assert told.report.complete
    assert str(told.report).startswith("every unit has one node, every node a unit; ")
    assert str(told.report).endswith(" units of blanks left out: " + ", ".join(map(repr, told.report.blanks)))
    assert owned(kept, 1)[-1].strip("Ġ") == ""


def test_units_that_move_are_told() -> None:
    text = "the dog"
    structure = Structure(("dog", "the"), [[0, 1]], features={"span": np.array([[4, 7], [0, 3]])})
    made = split(structure, KINDS["bytes"], text)
    assert len(made.report.moved) == len(owned(made, 0))
    assert "units in another place than in the text" in str(made.report)
    assert made.report.complete


def test_special_tokens_go_to_the_border_or_hang_on_the_root() -> None:
    item = ITEMS[2]
    text = str(item.metadata["text"])
    whole = KINDS["pieces"].encode(text)
    border = split(item.structure, KINDS["pieces"], text, special="border")
    assert border.ids.tolist() == whole.ids
    assert border.structure.unit_owner[[0, -1]].tolist() == [0, item.structure.size - 1]
    assert border.spans[[0, -1]].tolist() == [[-1, -1]] * 2
    hung = split(item.structure, KINDS["pieces"], text, special="root")
    assert hung.ids.tolist() == whole.ids
    assert hung.structure.nodes == ("[CLS]", *item.structure.nodes, "[SEP]")
    assert hung.structure.is_tree()
    assert hung.structure.root == item.structure.root + 1
    assert hung.structure.relations[-2:] == ("special", "special")
    assert hung.structure.order.tolist() == list(range(item.structure.size + 2))
    assert (hung.structure.features["span"][1:-1] == item.structure.features["span"]).all()
    none = split(item.structure, KINDS["bytes"], text, special="border")  # it has no such tokens
    assert none.ids.tolist() == KINDS["bytes"].encode(text).ids
    with pytest.raises(StructPEError, match="the structure has no root for special tokens; give"):
        split(words("a b", (0, 1), (2, 3)), KINDS["pieces"], "a b", special="root")


def test_tokenizers_in_every_form(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    KINDS["pieces"].save(str(tmp_path / "tokenizer.json"))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=KINDS["pieces"])
    expected = split(ITEMS[1].structure, KINDS["pieces"]).ids.tolist()
    for form in (fast, tmp_path, str(tmp_path / "tokenizer.json")):
        assert split(ITEMS[1].structure, form).ids.tolist() == expected


def test_what_is_no_fast_tokenizer_is_refused(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    (tmp_path / "vocab.txt").write_text("[UNK]\n[PAD]\n[CLS]\n[SEP]\n[MASK]\na\n")

    class Blanks(transformers.PreTrainedTokenizer):  # type: ignore[name-defined,misc]
        def get_vocab(self) -> dict[str, int]:
            return {"a": 0}

        @property
        def vocab_size(self) -> int:
            return 1

    with pytest.raises(
        StructPEError, match=r"^Blanks is a slow tokenizer, which has no character offsets; .* use_fast=True"
    ):
        split(ITEMS[0].structure, Blanks())
    with pytest.raises(StructPEError, match=r"^a list is not a known tokenizer; give a tokenizers\.Tokenizer, a f"):
        split(ITEMS[0].structure, ["a"])
    with pytest.raises(
        StructPEError, match=r"nowhere: there is no file 'nowhere'; give a tokenizer\.json, or a folder"
    ):
        split(ITEMS[0].structure, tmp_path / "nowhere")
    with pytest.raises(StructPEError, match=r"vocab\.txt: the file is not a tokenizer \(.*\); give a file written by"):
        split(ITEMS[0].structure, tmp_path / "vocab.txt")
