"""Every gold tree of treebanks as structural (SPR) and tree positions (TPE), per word and per subword.

    python experiments/parsing/all_treebanks.py CORPORA/ud/EWT CORPORA/ud/CS-CLTT CORPORA/ud/AF-AfriBooms

Each folder is read whole. Subwords are those of byte-level BPE and of WordPiece behind BERT's normalizer, both trained
on the folder's own texts. Of every sentence the invariants below are checked; what alignments lose is counted.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from structpe.formats import read
from structpe.formats.reading import Item
from structpe.parsing import Options, Parsed, ParsePositions, with_places
from structpe.transforms import expand

SIZE = 4000


def bytes_of(texts: Sequence[str]) -> Tokenizer:
    """Byte-level BPE, as GPT-2's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=SIZE, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def pieces_of(texts: Sequence[str]) -> Tokenizer:
    """WordPiece behind the normalizer of uncased BERT: lower case, no accents, no control characters."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=SIZE, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def check(places: ParsePositions, owner: np.ndarray, whole: bool) -> None:
    """What holds of the positions of any tree, owner the node of each unit; ``whole`` where every node has one unit."""
    depth, relative, branches = places.depth, places.relative, places.branches
    count = len(owner)
    assert len(depth) == len(branches) == count
    assert relative.shape == (count, count)
    assert len(np.unique(owner[depth == 0])) == 1 or not whole, "one root, whose word may own no unit"
    assert depth.min() == 0 or not whole
    assert 0 <= depth.min() <= depth.max()
    assert depth.max() < count or not whole
    assert [len(steps) for steps in branches] == depth.tolist(), "a step for each edge to the root"
    assert (relative == -relative.T).all(), "what one is to the other, the other is not"
    assert np.abs(relative).max() <= 2 * depth.max()
    assert (relative[depth == 0] == -depth).all(), "the root is above all"
    if whole:
        assert len(set(branches)) == count, "no two words have one way to the root"
    same = owner[:, None] == owner[None, :]
    assert (relative[same] == 0).all(), "units of one word are in one place"


def check_subwords(parsed: Parsed, tokenizer: Tokenizer) -> None:
    """Units have their words' positions, and are what the tokenizer gives where nothing is lost or moved."""
    assert parsed.split is not None
    assert parsed.subwords is not None
    owner, report = parsed.split.structure.unit_owner, parsed.split.report
    check(parsed.subwords, owner, whole=False)
    assert (parsed.subwords.depth == parsed.words.depth[owner]).all()
    assert (parsed.subwords.relative == parsed.words.relative[owner[:, None], owner[None, :]]).all()
    assert [parsed.words.branches[node] for node in owner] == list(parsed.subwords.branches)
    if not (report.missing or report.dropped or report.moved):
        assert parsed.split.ids.tolist() == tokenizer.encode(parsed.item.metadata["text"]).ids
    first = np.searchsorted(owner, np.arange(parsed.structure.size))
    for rule in ("first", "chain"):
        tree = expand(parsed.split.structure, rule)
        assert tree.is_tree()
        assert tree.size == len(owner)
        if not report.missing:
            assert (tree.parents()[first] == first[parsed.structure.parents()])[parsed.words.depth > 0].all()


def losses(items: Sequence[Item], tokenizer: Tokenizer) -> tuple[Counter[str], float]:
    """How many units there are, and how many of what the alignments report; seconds, checks not included."""
    counts: Counter[str] = Counter()
    seconds = 0.0
    for item in items:
        begin = time.perf_counter()
        parsed = with_places(item, Options(tokenizer))
        seconds += time.perf_counter() - begin
        check_subwords(parsed, tokenizer)
        assert parsed.split is not None
        report = parsed.split.report
        counts["units"] += parsed.structure.unit_count
        counts["sentences without a loss"] += report.complete
        for name in ("missing", "gaps", "shared", "dropped", "blanks", "moved"):
            counts[name] += len(getattr(report, name))
    return counts, seconds


def show(folder: Path) -> None:
    """Print what a treebank comes to."""
    begin = time.perf_counter()
    items = list(read(folder, "conllu"))
    reading = time.perf_counter() - begin
    words = sum(item.structure.size for item in items)
    unplaced = sum(int((np.asarray(item.structure.features["span"])[:, 0] < 0).sum()) for item in items)
    ranges = sum(item.metadata["multiword_tokens"] for item in items)
    seconds, deepest, widest = 0.0, 0, 0
    for item in items:
        begin = time.perf_counter()
        parsed = with_places(item)
        seconds += time.perf_counter() - begin
        check(parsed.words, np.arange(item.structure.size), whole=True)
        deepest = max(deepest, int(parsed.words.depth.max()))
        widest = max(widest, 1 + max((max(steps) for steps in parsed.words.branches if steps), default=0))
    longest = max(item.structure.size for item in items)
    print(f"{folder.name}: {len(items)} sentences, {words} words, the longest has {longest}; read in {reading:.1f} s")
    print(f"  {ranges} multiword tokens; {unplaced} words do not stand in the text of their sentence")
    print(f"  SPR and TPE of words in {seconds:.1f} s; deepest {deepest} edges, widest {widest} children")
    texts = [item.metadata["text"] for item in items]
    for name, tokenizer in (("byte-level BPE", bytes_of(texts)), ("WordPiece", pieces_of(texts))):
        counts, seconds = losses(items, tokenizer)
        units, complete = counts.pop("units"), counts.pop("sentences without a loss")
        told = ", ".join(f"{count} {what}" for what, count in counts.items())
        print(f"  {name}: {units} units of {tokenizer.get_vocab_size()} kinds in {seconds:.1f} s; {complete} sentences")
        print(f"    without a loss; in all {told}")


def main() -> None:
    """Read the folders that are named, and show each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    for folder in parser.parse_args().folders:
        show(folder)


if __name__ == "__main__":
    main()
