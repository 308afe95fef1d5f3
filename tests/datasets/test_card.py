"""Cards: each that is shipped is whole, and each that is not whole is refused in words."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import pytest
import yaml

from structpe.datasets import BENCHMARKS, Card, Corpus, card, cards, verify
from structpe.datasets.catalogue import File, card_of, parsed, read_card
from structpe.datasets.trees import MAKERS
from structpe.errors import ConfigError
from structpe.formats import READERS
from tests.datasets import SAMPLES
from tests.together import together

PLAIN: dict[str, Any] = {
    "name": "a",
    "kind": "trees",
    "description": "d",
    "licence": "MIT",
    "citation": "c",
    "files": [{"name": "a.txt", "sha256": "0" * 64, "bytes": 1}],
    "splits": {"train": {"file": "a.txt", "items": 2}},
    "reader": "tokens",
}
CARDS = cards()
FOLDERS = sorted(file.parent for file in SAMPLES.glob("*/card.yaml"))


def test_a_card_is_what_its_text_says() -> None:
    found = parsed(yaml.safe_dump(PLAIN), "here")
    assert found == card_of(PLAIN, "here")
    assert found.files == (File("a.txt", None, "0" * 64, 1),)
    assert found.splits["train"].file == ("a.txt",)
    assert found.size == 1


def test_an_address_is_the_name_behind_the_base() -> None:
    changed = PLAIN | {
        "base": "https://there/",
        "files": [{"name": "a.txt"}, {"name": "b", "url": "c d"}, {"name": "e", "url": None}],
    }
    assert [file.url for file in card_of(changed, "here").files] == ["https://there/a.txt", "https://there/c d", None]
    whole = PLAIN | {"base": "https://there/", "files": [{"name": "a.txt", "url": "http://other/a"}]}
    assert card_of(whole, "here").files[0].url == "http://other/a"


@together(
    "change, message",
    [
        ({"licnece": "MIT"}, "here: there is no key named 'licnece'. Did you mean 'licence'?"),
        (
            {"files": [{"name": "a.txt", "sha": "0"}]},
            "here: there is no key named 'files[0].sha'. Did you mean 'files[0].sha256'?",
        ),
        ({"name": 3}, "here: name takes text; given is 3"),
        (
            {"files": [{"name": "a.txt", "bytes": "1"}]},
            "here: files[0].bytes takes a whole number or null; given is '1'",
        ),
        (
            {"files": [{"name": "a.txt", "bytes": True}]},
            "here: files[0].bytes takes a whole number or null; given is True",
        ),
        (
            {"files": [{"name": "a.txt", "unpack": "rar"}]},
            "files[0].unpack takes one of 'zip', 'tar.gz', 'gz', 'numbers' or null; given is 'rar'",
        ),
        ({"files": [{"url": "https://a"}]}, "here: the key 'files[0].name' is missing; it takes text"),
        ({"files": [3]}, "here: files[0] takes a mapping; given is 3"),
        ({"files": [{"name": "a.txt", "sha256": "0" * 63}]}, "give 64 digits 0-9 and a-f"),
        ({"files": [{"name": "a.txt", "digest": "0" * 32}]}, "give md5:, sha1: or git: and its digits 0-9, a-f"),
        (
            {"files": [{"name": "a.txt", "digest": "md5:" + "0" * 40}]},
            "give md5:, sha1: or git: and its digits 0-9, a-f",
        ),
        ({"files": [{"name": "a.txt", "url": "file:///etc/passwd"}]}, "give an http or https URL"),
        ({"files": [{"name": "../a.txt"}], "splits": {}}, "the name '../a.txt' is outside the folder of the set"),
        ({"files": [{"name": "/a.txt"}], "splits": {}}, "the name '/a.txt' is outside"),
        ({"files": [{"name": "a.txt", "into": "..", "unpack": "zip"}]}, "the name '..' is outside"),
        ({"files": [{"name": "a.txt"}, {"name": "a.txt"}]}, "two files leave 'a.txt'"),
        ({"splits": {"train": {"file": ""}}}, "split 'train' reads '', which no file leaves"),
        ({"splits": {"train": {"file": "."}}}, "split 'train' reads '.', which no file leaves"),
        (
            {"files": [{"name": "", "url": "https://a.b/c"}]},
            "a file has the name ''; give a name in the folder of the set",
        ),
        (
            {"files": [{"name": ".", "url": "https://a.b/c"}]},
            "a file has the name '.'; give a name in the folder of the set",
        ),
        ({"splits": {"train": {"file": "b.txt"}}}, "split 'train' reads 'b.txt', which no file leaves"),
        ({"splits": {1: {"file": "a.txt"}}}, "splits takes a mapping; given is {1: {'file': ['a.txt']}}"),
        ({"reader": None}, "split 'train' has files but no reader; name one"),
    ],
)
def test_a_wrong_card_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        card_of(PLAIN | change, "here")


@pytest.mark.parametrize("text", ["", "3", "[1]", "a: [", "a: 1\n  b: 2"])
def test_what_is_no_card_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="here: "):
        parsed(text, "here")


@pytest.mark.parametrize("lacking", ["name", "kind", "description", "licence", "citation"])
def test_a_card_without_a_needed_key_is_refused(lacking: str) -> None:
    with pytest.raises(ConfigError, match=f"here: the key '{lacking}' is missing"):
        card_of({key: value for key, value in PLAIN.items() if key != lacking}, "here")


def test_every_card_is_found_by_its_name() -> None:
    folder = files("structpe.datasets").joinpath("cards")
    assert len(CARDS) == len([file for file in folder.iterdir() if file.name.endswith(".yaml")]) > 50
    for name, known in CARDS.items():
        assert known.name == name
        if known.pattern is None:
            assert card(name) == known


@together("name", sorted(CARDS))
def test_a_card_names_what_there_is(name: str) -> None:
    known: Card = CARDS[name]
    assert known.description.endswith(".")
    assert known.licence
    assert known.citation.endswith(".")
    assert known.maker is None or known.maker in MAKERS
    for reader in {known.reader, *(part.reader for part in known.splits.values())} - {None}:
        assert reader in READERS
    for entry in known.benchmarks:
        assert entry.name in BENCHMARKS or "{" in entry.name
    for file in known.files:
        assert file.url or file.sha256 or known.maker or known.licence == "LDC User Agreement"
        assert file.unpack is None or file.leaves
        assert file.sha256 is None or file.digest is None
        assert file.bytes is None or file.sha256
        assert "github" not in (file.url or "") or known.pattern or re.search(r"/[0-9a-f]{40}/", file.url or "")


def test_only_sets_of_which_nothing_is_published_are_trusted_on_first_use() -> None:
    """Cards of many sets, and those of which neither the files nor a published checksum are known."""
    unknown = {name for name, known in CARDS.items() if not all(f.sha256 or f.digest for f in known.files)}
    unknown = {name for name in unknown if CARDS[name].licence != "LDC User Agreement"}
    assert unknown == {
        *("ogbg-mol{name}", "tu:{name}", "ud:{language}-{treebank}:{code}"),
        *("ogbg-molhiv", "ogbg-ppa", "zinc12k"),
    }


def test_every_kind_that_users_come_with_is_there() -> None:
    for name in (
        *("ldc2015e86", "ldc2017t10", "ldc2020t02", "little-prince", "bio-amr", "webnlg-2017", "webnlg-3.0", "agenda"),
        *("ud-english-ewt", "ud-czech-cltt", "ud-afrikaans-afribooms", "sst", "listops", "scan", "cogs", "ogbg-molhiv"),
        *("ogbg-molpcba", "ogbg-ppa", "ogbg-code2", "ogbn-arxiv", "ogbn-products", "ogbn-proteins", "zinc12k"),
        *(
            "peptides-func",
            "peptides-struct",
            "tu-mutag",
            "cora",
            "citeseer",
            "pubmed",
            "minesweeper",
            "brec",
            "csl",
            "exp",
        ),
    ):
        assert card(name).name == name


def test_one_card_stands_for_many_sets() -> None:
    french = card("ud:French-GSD:fr")
    assert french.name == "ud:French-GSD:fr"
    assert french.splits["dev"].file == ("fr_gsd-ud-dev.conllu",)
    assert french.files[0].url == (
        "https://raw.githubusercontent.com/UniversalDependencies/UD_French-GSD/r2.16/fr_gsd-ud-train.conllu"
    )
    assert card("ogbg-molesol").benchmarks[0].name == "ogbg-molesol"
    assert card("ogbg-molhiv").size is None


@pytest.mark.parametrize("name", ["ud:French", "ud:../..-x:fr", "ud:French-GSD:fr/..", "coar", ""])
def test_an_unknown_set_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="there is no data set named"):
        card(name)


def test_the_nearest_name_is_given() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'cora'"):
        card("coar")


@together("folder", FOLDERS)
def test_the_cards_of_the_samples_are_of_the_same_kind(folder: Any) -> None:
    known = read_card(folder / "card.yaml")
    assert known.name == folder.name
    assert known.licence == "CC0-1.0"
    in_splits = {name for part in known.splits.values() for name in part.file}
    tables = {name for name in (file.name for file in known.files) if name.endswith(".tsv")}
    assert {file.name for file in known.files} == in_splits | tables  # the same as tables are for another reader
    report = verify(Corpus(known, folder), read=True)
    assert {state.word for state in (*report.files, *report.splits)} == {"ok"}
