"""Training of parsers, by spaCy's own trainer, and their scores, both on trees in CoNLL-U."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from structpe.data.digests import Content, digest, refuse_changed, structures
from structpe.errors import foreign, located, needing, reason_of, undamaged
from structpe.formats.reading import Item
from structpe.formats.spacy import to_doc
from structpe.parsing.formats import NOTHING
from structpe.parsing.gold import gold_items, names_files
from structpe.parsing.models import ParsingError, files_of, not_finite
from structpe.plain.options import STEPS
from structpe.system.files import (
    atomic_text,
    atomic_write_folder,
    check,
    finish,
    lock,
    read_sealed,
    seal,
    sealed,
    sweep,
)
from structpe.system.processes import EndRequest

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.vocab import Vocab
    from thinc.api import Config

__all__ = ["TAGGERS", "ParserScores", "Plan", "Progress", "as_doc", "documents", "evaluate", "train"]

T = TypeVar("T")
CORPORA = ("train.spacy", "dev.spacy")
REMEDY = "remove the folder, and train again"
SHOWN = 100
"""Number of documents of the training files that are scored without files to choose by."""
TOGETHER = 10
"""Sentences per document; with several, the parser learns where a sentence ends (advice of spaCy's manual)."""
TAGGERS = {"morphologizer": "upos", "tagger": "xpos"}
"""The component of a pipeline that predicts each kind of tags."""
TAGS = {"upos": "pos_", "xpos": "tag_"}
"""Where spaCy's words have each kind of tags."""
AT_ONCE = 1000
"""Number of sentences in memory."""


def as_doc(item: Item, vocab: Vocab) -> Doc:
    """A sentence with heads, relations, and the tags that it has: UPOS as ``pos_``, XPOS as ``tag_``."""
    upos, xpos = (["" if tag == NOTHING else tag for tag in item.metadata[name]] for name in ("upos", "xpos"))
    with located(item.structure.name or f"item {item.id!r}"):
        return to_doc(item.structure, vocab, item.metadata["space_after"], xpos, upos)


def documents(items: Iterable[Item], vocab: Vocab, together: int = TOGETHER) -> Iterator[Doc]:
    """Documents of ``together`` sentences each, in the order of the file; the last may have fewer."""
    from spacy.tokens import Doc

    sentences = iter(items)
    while group := [as_doc(item, vocab) for item in islice(sentences, together)]:
        whole = Doc.from_docs(group)
        assert whole is not None, "the group is not empty"
        yield whole


@dataclass(frozen=True)
class ParserScores:
    """Percentages of words whose head (UAS), head and relation (LAS), and tags (UPOS, XPOS) are right.

    For ``las``, ``uas``, ``upos`` and ``xpos``, words and sentences are given; all words count, including punctuation,
    with whole relations such as ``nsubj:pass``; of tags, the words that have one in the files. ``spacy_...`` are from
    spaCy's scorer on running text, ten sentences at a time: words and sentences are predicted, punctuation does not
    count, and LAS and UAS are F-scores. Scores of tags are None if the files have none, or the parser predicts none.

    Attributes:
        sentences: number of sentences.
        words: number of words.
        las: head and relation.
        uas: head.
        upos: universal tag.
        xpos: tag of the treebank.
        spacy_las: head and relation, on running text.
        spacy_uas: head, on running text.
        spacy_upos: universal tag, on running text.
        spacy_xpos: tag of the treebank, on running text.
        spacy_words: words that spaCy's tokenizer found.
    """

    sentences: int
    words: int
    las: float
    uas: float
    upos: float | None
    xpos: float | None
    spacy_las: float
    spacy_uas: float
    spacy_upos: float | None
    spacy_xpos: float | None
    spacy_words: float


def evaluate(given: Any, nlp: Language) -> ParserScores:
    """Score a parser on CoNLL-U files, or on sentences from Python.

    Args:
        given: as of :func:`~structpe.parsing.gold.gold_items`.
        nlp: the parser.

    Raises:
        ReadError, StructureError: a file or sentence is missing or bad.
        ParsingError: there is no sentence.
    """
    from spacy.training import Example

    items = gold_items(given)
    sentences, counts, examples = 0, Counter[str](), list[Example]()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="spacy|thinc")  # about words that spaCy's tokenizer does not find
        while some := list(islice(items, AT_ONCE)):
            sentences += len(some)
            counts.update(_right(some, nlp))
            examples += [Example(nlp.make_doc(doc.text), doc) for doc in documents(some, nlp.vocab)]
        if not sentences:
            raise ParsingError("there is no sentence to score a parser on; give files with some")
        found = nlp.evaluate(examples)
    trees = {name: 100 * counts[name] / counts["words"] for name in ("las", "uas")}
    trees |= {f"spacy_{name}": 100 * float(found[f"dep_{name}"] or 0) for name in ("las", "uas")}
    tags: dict[str, float | None] = dict.fromkeys([*TAGS, *(f"spacy_{name}" for name in TAGS)])
    for name, score in (("upos", "pos_acc"), ("xpos", "tag_acc")):
        if counts[f"guessed {name}"]:
            tags[name] = 100 * counts[name] / counts[f"with {name}"]
            tags[f"spacy_{name}"] = None if found.get(score) is None else 100 * float(found[score])
    trees["spacy_words"] = 100 * float(found["token_acc"] or 0)
    return ParserScores(sentences, counts["words"], **{**trees, **tags})  # type: ignore[arg-type]  # only tags may be None


def _right(items: Sequence[Item], nlp: Language) -> Iterator[str]:
    """What is right, or counts, of each word: a name for each."""
    gold = [as_doc(item, nlp.vocab) for item in items]
    for right, given in zip(gold, nlp.pipe(map(_bare, gold)), strict=True):
        for one, other in zip(right, given, strict=True):
            yield "words"
            if one.head.i == other.head.i:
                yield "uas"
                if one.dep_ == other.dep_:
                    yield "las"
            for name, attribute in TAGS.items():
                tag, guessed = getattr(one, attribute), getattr(other, attribute)
                if tag:
                    yield f"with {name}"
                    if guessed:
                        yield f"guessed {name}"
                    if guessed == tag:
                        yield name


def _bare(doc: Doc) -> Doc:
    """A copy with words and white space only, as one sentence."""
    from spacy.tokens import Doc as SpacyDoc

    starts: list[bool | int | None] = [place == 0 for place in range(len(doc))]
    spaces = [bool(word.whitespace_) for word in doc]
    return SpacyDoc(doc.vocab, words=[word.text for word in doc], spaces=spaces, sent_starts=starts)


class Progress(NamedTuple):
    """Progress of training.

    Attributes:
        step: number of finished steps.
        steps: number of all steps.
        scores: if the model was scored at this step, spaCy's ``dep_las``, ``dep_uas``, ``pos_acc`` (UPOS), ``tag_acc``
            (XPOS) and others, in 0..1; otherwise None. Tags that the sentences lack have no score.
    """

    step: int
    steps: int
    scores: dict[str, float] | None


@dataclass(frozen=True)
class Plan:
    """What to train.

    Attributes:
        files: CoNLL-U files or folders to train on, or sentences; see :func:`~structpe.parsing.gold.gold_items`.
        dev: the same, by which the best model is chosen; without them the last is kept.
        steps: steps of the optimizer.
        seed: seed of the weights and the order of the sentences.
        language: language code of spaCy's tokenizer; ``xx`` is for many languages.
    """

    files: Any
    dev: Any = ()
    steps: int = 3000
    seed: int = 0
    language: str = "xx"

    def __post_init__(self) -> None:
        if isinstance(self.files, (list, tuple)) and not self.files:
            raise ParsingError("nothing to train on is given; give a file in CoNLL-U at least, or sentences")
        if self.steps < 1:
            raise ParsingError(f"steps are {self.steps}; give 1 or more")
        if self.steps > STEPS:
            raise ParsingError(f"steps are {self.steps}; at most {STEPS} are allowed, give fewer")
        if not 0 <= self.seed < 1 << 32:
            raise ParsingError(f"the seed is {self.seed}; give 0..{(1 << 32) - 1}")


def train(plan: Plan, out: str | Path, report: Callable[[Progress], object] = lambda progress: None) -> Path:
    """Train a parser, and write it into a folder for ``load_parser`` and ``spacy.load``.

    It has a tagger of UPOS and one of XPOS, each if any word of ``plan.files`` has such a tag. Each learns from the
    words that have one, and then tags all words.

    The folder is written atomically. During training, the last and the best model are in a folder with ``.part`` after
    its name. After an interruption, the same call resumes with the weights of the last evaluation and a new optimizer,
    so the result is similar to that of uninterrupted training, but not the same.

    Args:
        plan: what to train.
        out: the new folder.
        report: called after each step.

    Raises:
        ParsingError: the folder has no name, or exists; another training was interrupted there; spaCy does not have
            the language.
        Busy: another process trains there.
        FileExistsError: the folder with ``.part`` after its name exists and is of no training; it is left as it is.
        StoreError: the files of an interrupted training are damaged, or from other sentences.
        KeyboardInterrupt, SystemExit: a signal has ended the training; the model after its last step is kept.
        ReadError, StructureError: a file is missing or invalid.
    """
    with needing("spacy", "trees"):
        import spacy  # noqa: F401
    out = Path(out)
    if out.name.strip() in ("", ".."):
        raise ParsingError("the folder of the new parser has no name; give one")
    part = out.with_name(f"{out.name}.part")
    if out.exists():
        sweep(part)  # a process may have been killed at its very end
        raise ParsingError("the folder exists; remove it, or choose another folder").at(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with lock(part) as work:
        return _train(plan, out, (part, work), report)


def _train(plan: Plan, out: Path, places: tuple[Path, Path], report: Callable[[Progress], object]) -> Path:
    part, work = places
    state, taggers = _prepare(plan, part, work)
    try:
        with EndRequest("the training ends after this step, with its model; once more ends it at once") as asked:
            for step, scores in _steps(plan, part, state, taggers, asked):
                report(Progress(step, plan.steps, scores))
            if asked.number and _state(part).step < plan.steps:
                asked.end()
    finally:
        if not (part / "state.json").exists():  # nothing to resume
            os.rename(part, work / "gone")  # at one stroke; its contents are removed with the lock
    _finish(plan, part, out)
    os.rename(part, work / "gone")
    return out


@dataclass(frozen=True)
class _State:
    """The number of steps of the last model, and the score of the best."""

    step: int = 0
    best: float = -1.0


def _prepare(plan: Plan, part: Path, work: Path) -> tuple[_State, list[str]]:
    """The corpora, which are written the first time; the state to start from, and the taggers that can learn."""
    nlp = _blank(plan.language)
    items, dev = list(gold_items(plan.files)), list(gold_items(plan.dev))
    taggers = [name for name, tags in TAGGERS.items() if any(set(item.metadata[tags]) - {NOTHING} for item in items)]
    began, now = _begun(part), {"plan": _described(plan), "content": _content(items, dev)}
    if began is None:
        _begin(work / "new", nlp, items, dev, now)
        finish(work / "new", part, work)
    elif began["plan"] != now["plan"]:
        raise ParsingError(
            "a training with other files or options was interrupted here; give the same again to resume, or remove the "
            "folder"
        ).at(part)
    else:
        refuse_changed(began["content"], _content(items, dev))
        check(part, CORPORA, REMEDY)
    return _state(part), taggers


def _described(plan: Plan) -> dict[str, Any]:
    """The plan as plain data; of sentences that are not in files, which have digests, that there are some."""
    named = {
        name: list(map(str, given if isinstance(given, (list, tuple)) else [given])) if names_files(given) else "given"
        for name, given in (("files", plan.files), ("dev", plan.dev))
    }
    return {**named, "steps": plan.steps, "seed": plan.seed, "language": plan.language}


def _begun(part: Path) -> dict[str, Any] | None:
    """The description of an interrupted training; None where there is nothing.

    Raises:
        FileExistsError: the folder is not one of a training.
    """
    kept = part / "plan.json"
    if part.is_symlink() or (part.exists() and not kept.is_file()):
        raise foreign(part)
    if not part.exists():
        return None
    with undamaged(kept, REMEDY):
        began = read_sealed(kept.read_text(encoding="utf-8"))
        return {"plan": began["plan"], "content": began["content"]}


def _begin(part: Path, nlp: Language, items: Sequence[Item], dev: Sequence[Item], description: dict[str, Any]) -> None:
    from spacy.tokens import DocBin

    part.mkdir()
    for name, docs in zip(CORPORA, (list(documents(items, nlp.vocab)), list(documents(dev, nlp.vocab))), strict=True):
        corpus = DocBin(docs=docs or list(documents(items, nlp.vocab))[:SHOWN])
        corpus.to_disk(part / name)
    seal(part, CORPORA)
    (part / "plan.json").write_text(sealed(description), encoding="utf-8")


def _content(items: Sequence[Item], dev: Sequence[Item]) -> Content:
    """Digests of the sentences for training and for choosing."""
    found: dict[str, str] = {}
    for what, each in (("training sentences", items), ("sentences to choose by", dev)):
        found |= structures(what, [item.structure for item in each])
        found[f"tags and blanks of the {what}"] = digest(
            [list(item.metadata[name]) for name in (*TAGGERS.values(), "space_after")] for item in each
        )
    return found


def _state(part: Path) -> _State:
    """The state of an interrupted training."""
    state = part / "state.json"
    if not state.exists():
        return _State()
    with undamaged(state, REMEDY):
        return _State(**read_sealed(state.read_text(encoding="utf-8")))


def _blank(language: str) -> Language:
    import spacy

    try:
        return spacy.blank(language)
    except ImportError as error:  # spaCy's error for an unknown language, or a missing package
        raise ParsingError(
            f"spaCy has no tokenizer for the language {language!r}: {reason_of(error)} Give another code, or 'xx'"
        ) from None


def _config(plan: Plan, part: Path, done: int, taggers: Sequence[str]) -> Config:
    from thinc.api import Config

    config = Config().from_disk(Path(__file__).with_name("pipeline.cfg"), interpolate=False)
    config["paths"] = {name: str(part / f"{name}.spacy") for name in ("train", "dev")}
    config["system"]["seed"] = plan.seed
    config["nlp"]["lang"] = plan.language
    config["training"]["max_steps"] = plan.steps - done
    for name in set(TAGGERS).difference(taggers):
        config["nlp"]["pipeline"].remove(name)
        del config["components"][name]
    size = config["training"]["batcher"]["size"]
    size["start"] = min(size["stop"], size["start"] * size["compound"] ** done)
    return config


def _steps(
    plan: Plan, part: Path, state: _State, taggers: Sequence[str], asked: EndRequest
) -> Iterator[tuple[int, dict[str, float] | None]]:
    """The number of each step, and scores at some of them, such as the last; the model is saved with each score.

    After a signal it is saved without scoring, which could take too long.
    """
    from spacy.schemas import ConfigSchemaTraining
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import create_evaluation_callback
    from spacy.util import registry, resolve_dot_names

    if state.step >= plan.steps:
        return
    nlp = init_nlp(_config(plan, part, state.step, taggers))
    config = nlp.config.interpolate()
    if state.step:
        check(part / "last", files_of(part / "last"), REMEDY)
        nlp.from_disk(part / "last")  # with its configuration
    settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    corpora = resolve_dot_names(config, [settings["train_corpus"], settings["dev_corpus"]])
    score = create_evaluation_callback(nlp, corpora[1], settings["score_weights"])
    best = state.best
    for info in _improving(nlp, settings, corpora[0], score):
        step, whole, scores = state.step + info["step"], info["score"], info["other_scores"]
        ending = bool(asked.number)
        if scores is not None or step == plan.steps:
            with nlp.use_params(settings["optimizer"].averages):
                if scores is None:
                    whole, scores = score()
                best = _keep(nlp, part, step, whole, best)
        elif ending:
            with nlp.use_params(settings["optimizer"].averages):
                _keep_last(nlp, part, _State(step, best))
        yield step, scores
        if ending:
            return


def _improving(nlp: Language, settings: dict[str, Any], corpus: Any, score: Any) -> Iterator[dict[str, Any]]:
    """The loop of ``spacy.training.train``; the caller saves the model."""
    from spacy.training.loop import create_train_batches, train_while_improving

    loop = train_while_improving(
        nlp,
        settings["optimizer"],
        create_train_batches(nlp, corpus, settings["batcher"], settings["max_epochs"]),
        score,
        dropout=settings["dropout"],
        accumulate_gradient=settings["accumulate_gradient"],
        patience=settings["patience"],
        max_steps=settings["max_steps"],
        eval_frequency=settings["eval_frequency"],
        exclude=[],
        annotating_components=[],
        before_update=None,
    )
    for _, info, _ in _quiet(loop):
        yield info


def _quiet(loop: Iterator[T]) -> Iterator[T]:
    """The steps of a loop of spaCy, without its output before an error."""
    while True:
        try:
            with redirect_stdout(StringIO()):
                step = next(loop)
        except StopIteration:
            return
        except ValueError as error:
            raise ParsingError(
                f"spaCy cannot learn from these sentences ({reason_of(error)}); give more of them, with two tags and "
                "two relations at least"
            ) from error
        yield step


def _keep(nlp: Language, part: Path, step: int, score: float, best: float) -> float:
    """Save the model as the last, and as the best if it is. Returns the better score."""
    if score > best:
        atomic_write_folder(part / "best", lambda hidden: _write(nlp, hidden))
    _keep_last(nlp, part, _State(step, max(score, best)))
    return max(score, best)


def _keep_last(nlp: Language, part: Path, state: _State) -> None:
    atomic_write_folder(part / "last", lambda hidden: _write(nlp, hidden))
    atomic_text(part / "state.json", sealed(asdict(state)))


def _write(nlp: Language, folder: Path) -> None:
    if bad := not_finite(nlp):
        raise ParsingError(f"the weights of {bad} are no longer finite: training has diverged; give more sentences")
    nlp.to_disk(folder)
    seal(folder, files_of(folder))


def _finish(plan: Plan, part: Path, out: Path) -> None:
    """Write the model without paths of this machine."""
    import spacy

    folder = part / ("best" if plan.dev else "last")
    check(folder, files_of(folder), REMEDY)
    nlp = spacy.load(folder)
    nlp.config["paths"] = dict.fromkeys(nlp.config["paths"])
    nlp.meta["name"] = "structpe_parser"
    atomic_write_folder(out, lambda hidden: _write(nlp, hidden))
