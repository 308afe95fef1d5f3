"""A subword vocabulary, shared by the units of structures and texts, trained on the training split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from structpe.errors import MissingExtra

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["FIRST", "LAST", "PADDING", "SMALLEST", "SPECIALS", "UNKNOWN", "train_vocabulary"]

PADDING, UNKNOWN, FIRST, LAST = "<pad>", "<unk>", "<s>", "</s>"
SPECIALS = (PADDING, UNKNOWN, FIRST, LAST)
SMALLEST = 256 + len(SPECIALS)
"""Size of the smallest vocabulary: all bytes and the special units."""


def train_vocabulary(texts: Iterable[str], relations: Sequence[str], size: int, lowercase: bool = False) -> Tokenizer:
    """Byte-level BPE (Sennrich et al. 2016) over texts and node labels.

    With bytes, any text can be encoded and decoded exactly. Each relation label that appears at least twice is one
    unit.

    Args:
        texts: texts and node labels.
        relations: relation labels, one per occurrence.
        size: number of units, including special units and relations.
        lowercase: whether texts are lowercased.

    Raises:
        MissingExtra: ``tokenizers`` is not installed.
    """
    try:
        from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    except ImportError as missing:
        raise MissingExtra("tokenizers", "text") from missing
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), *([normalizers.Lowercase()] if lowercase else [])])
    # A space before each label and text: a word is then the same unit at the start and inside.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    frequent = sorted(relation for relation, times in Counter(relations).items() if relation and times > 1)
    trainer = trainers.BpeTrainer(
        vocab_size=max(size - len(frequent), SMALLEST),
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(relation, single_word=True, normalized=False) for relation in frequent])
    return tokenizer
