"""``structpe data``: which sets there are, get them, see whether they are whole."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from structpe.datasets import cards
from tests.cli.running import complaint, output, structpe
from tests.datasets import SAMPLES, corpus
from tests.together import together


@pytest.fixture
def mutag(tmp_path: Path) -> Path:
    """Where MUTAG was put from a local copy."""
    output("data", "get", "tu-mutag", "--to", tmp_path, "--from", corpus("tu/MUTAG"))
    return tmp_path


@pytest.mark.slow
def test_list_names_every_set(tmp_path: Path) -> None:
    lines = output("data", "list", "--to", tmp_path).splitlines()
    assert lines[0].split() == ["name", "kind", "size", "here", "licence", "what", "it", "is"]
    assert [line.split()[0] for line in lines[2:]] == list(cards())
    assert "  yes  " not in "\n".join(lines)
    assert any(line.startswith("webnlg-2017 ") and "CC-BY-NC-SA-4.0" in line for line in lines)


def test_list_may_be_of_a_kind_and_json(tmp_path: Path) -> None:
    found = json.loads(output("data", "list", "--kind", "amr", "--json"))
    assert {card["kind"] for card in found} == {"amr"}
    assert "ldc2020t02" in {card["name"] for card in found}
    message = complaint("data", "list", "--kind", "amrs")
    assert message.startswith("there are no data sets of kind 'amrs'; kinds: amr, graphs, molecules, nodes, ")


def test_show_is_the_card() -> None:
    shown = output("data", "show", "ud-czech-cltt")
    assert "licence:     CC-BY-SA-4.0\n" in shown
    assert "citation:    Kríž and Hladká (2018)." in shown
    assert "train    467  cs_cltt-ud-train.conllu" in shown
    assert (
        "https://raw.githubusercontent.com/UniversalDependencies/UD_Czech-CLTT/a0cfb23c6c2161f6e7712e1009c35e9a8"
        in shown
    )
    assert json.loads(output("data", "show", "cora", "--json"))["benchmarks"] == [
        {"name": "cora", "folder": ".", "options": {}}
    ]
    assert complaint("data", "show", "coar").startswith("there is no data set named 'coar'. Did you mean 'cora'?")


def test_get_from_a_local_copy_then_verify(mutag: Path) -> None:
    shown = output("data", "verify", "tu-mutag", "--to", mutag, "--read")
    assert len(re.findall(r"\bok\b", shown)) == 22
    assert "split  all" in shown
    assert output("data", "verify", "tu-mutag", mutag) == output("data", "verify", "tu-mutag", mutag / "tu-mutag")
    assert "  yes  " in output("data", "list", "--kind", "graphs", "--to", mutag)
    again = structpe("data", "get", "tu-mutag", "--to", mutag)
    assert (again.returncode, again.stdout, again.stderr) == (0, f"{mutag / 'tu-mutag'}\n", ""), "nothing is fetched"


def test_what_changed_is_found(mutag: Path) -> None:
    file = mutag / "tu-mutag" / "MUTAG" / "MUTAG.txt"
    file.write_text(file.read_text().replace("1", "2", 1))
    (file.parent / "10fold_idx" / "test_idx-1.txt").unlink()
    done = structpe("data", "verify", "tu-mutag", "--to", mutag)
    assert done.returncode == 1
    assert done.stderr == (
        f"structpe: {mutag / 'tu-mutag'}: 2 of 21 are not as they should be; fetch them again: structpe data get "
        "tu-mutag\n"
    )
    assert re.search(r"MUTAG/MUTAG\.txt +changed +sha256 \w{64}, the card says \w{64}", done.stdout)
    assert re.search(r"MUTAG/10fold_idx/test_idx-1\.txt +missing", done.stdout)


def test_get_says_what_is_missing(tmp_path: Path) -> None:
    message = complaint_of("data", "get", "ldc2020t02", "--to", tmp_path)
    assert message.startswith(
        "structpe: ldc2020t02 cannot be fetched, as these files are not public: data/amrs/split/training/*.txt, data/"
    )
    assert f"structpe data get ldc2020t02 --to {tmp_path} --from FOLDER" in message
    mine = SAMPLES / "kg_sample"
    message = complaint_of("data", "get", "ud-czech-cltt", "--to", tmp_path, "--from", mine)
    assert message == (
        f"structpe: {mine} lacks files of ud-czech-cltt: cs_cltt-ud-train.conllu, "
        "cs_cltt-ud-dev.conllu, cs_cltt-ud-test.conllu. Give the folder that holds them\n"
    )


def complaint_of(*words: str | Path) -> str:
    done = structpe(*words)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_an_amr_release_is_read_from_its_folder(tmp_path: Path) -> None:
    for part in ("training", "dev", "test"):
        folder = tmp_path / "release" / "data" / "amrs" / "split" / part
        folder.mkdir(parents=True)
        for name in ("b", "a"):
            (folder / f"amr-release-3.0-{name}.txt").write_text(f"# ::id {name}\n(w / want-01)\n")
    output("data", "get", "ldc2020t02", "--to", tmp_path, "--from", tmp_path / "release")
    done = structpe("data", "verify", "ldc2020t02", "--to", tmp_path, "--read")
    assert done.returncode == 1
    assert "2 items, the card says 55635" in done.stdout


@together(
    "words, message",
    [
        (["get"], "data get needs the NAME of a set; 'structpe data list' names them"),
        (["list", "cora"], "list takes no name; for the card of a set: structpe data show cora"),
        (["show", "cora", "--from", "a"], "data show takes no --from; --from belongs to get"),
        (["get", "cora", "--read"], "data get takes no --read; --read belongs to verify"),
        (["get", "cora", "folder"], "data get takes no FOLDER; FOLDER belongs to verify"),
        (["list", "--file", "a"], "data list takes no --file; --file belongs to get and verify"),
        (["fetch", "cora"], "data: argument DO: invalid choice: 'fetch'"),
        (["get", "cora", "--file", "x"], "cora has no part 'x'; its parts and files: ind.cora.x, ind.cora.y, "),
        (
            ["verify", "cora", "--to", "nowhere"],
            "nowhere/cora: there is no such folder; fetch the set: structpe data g",
        ),
    ],
)
def test_mistakes_are_explained(words: list[str], message: str) -> None:
    assert complaint("data", *words, code=1 if "nowhere" in words else 2).startswith(message)


def test_show_names_the_first_files_and_how_many_more() -> None:
    whole = json.loads(output("data", "show", "webnlg-2.0", "--json"))["files"]
    assert len(whole) > 200
    lines = output("data", "show", "webnlg-2.0").splitlines()
    assert len(lines) < 40
    assert lines[-1] == f"and {len(whole) - 10} more files; --all shows them, --json everything"
    every = output("data", "show", "webnlg-2.0", "--all")
    assert all(file["name"] in every for file in whole)
    assert "more files" not in every


def test_get_says_the_first_lines_and_how_many_more(tmp_path: Path) -> None:
    source = corpus("tu/MUTAG")
    done = structpe("data", "get", "tu-mutag", "--to", tmp_path / "a", "--from", source)
    lines = done.stderr.splitlines()
    assert len(lines) == 11
    assert re.fullmatch(r"and \d+ more lines such as these; --all prints them", lines[-1])
    said = structpe("data", "get", "tu-mutag", "--to", tmp_path / "b", "--from", source, "--all").stderr.splitlines()
    assert len(said) == 10 + int(lines[-1].split()[1])


def cora(tmp_path: Path, *parts: str) -> Path:
    """A folder in which only some files of Cora were asked for."""
    words = [word for part in parts for word in ("--file", part)]
    output("data", "get", "cora", "--to", tmp_path, "--from", corpus("planetoid"), *words)
    return tmp_path


def test_what_was_never_asked_for_is_not_wrong(tmp_path: Path) -> None:
    folder = cora(tmp_path, "ind.cora.y", "ind.cora.ty")
    done = structpe("data", "verify", "cora", "--to", folder)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    words = dict(re.findall(r"file +(ind\.\S+) +(ok|as first seen|not fetched|missing)", done.stdout))
    assert {name for name, word in words.items() if word != "not fetched"} == {"ind.cora.y", "ind.cora.ty"}
    assert re.search(r"\b2 (ok|as first seen), \d+ not fetched|\d+ not fetched, 2 (ok|as first seen)", done.stdout)


def test_what_was_fetched_and_is_gone_is_missing(tmp_path: Path) -> None:
    folder = cora(tmp_path, "ind.cora.y", "ind.cora.ty")
    (folder / "cora" / "ind.cora.y").unlink()
    done = structpe("data", "verify", "cora", "--to", folder)
    assert done.returncode == 1
    assert re.search(r"ind\.cora\.y +missing", done.stdout)
    assert "1 of 8 are not as they should be" in done.stderr


def test_what_is_asked_for_by_name_must_be_there(tmp_path: Path) -> None:
    folder = cora(tmp_path, "ind.cora.y")
    done = structpe("data", "verify", "cora", "--to", folder, "--file", "ind.cora.x")
    assert (done.returncode, "missing" in done.stdout) == (1, True)
    message = complaint("data", "verify", "cora", "--to", folder, "--file", "nosuch", code=2)
    assert message.startswith("cora has no part 'nosuch'; its parts and files: ")


def test_splits_that_need_what_was_not_fetched_are_not_wrong(tmp_path: Path) -> None:
    folder = cora(tmp_path, "ind.cora.y")
    done = structpe("data", "verify", "cora", "--to", folder, "--read")
    assert done.returncode == 0, done.stderr
    assert re.search(r"split +\S+ +not fetched +it needs ind\.cora\.", done.stdout)


def test_an_empty_folder_is_not_verified(tmp_path: Path) -> None:
    (tmp_path / "cora").mkdir()
    done = structpe("data", "verify", "cora", "--to", tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("the folder has no file of the set; fetch it: structpe data get cora\n")


def test_a_copy_without_a_record_lacks_what_its_part_lacks(tmp_path: Path) -> None:
    folder = cora(tmp_path)
    (folder / "cora" / ".structpe.json").unlink()
    (folder / "cora" / "ind.cora.x").unlink()
    done = structpe("data", "verify", "cora", "--to", folder)
    assert done.returncode == 1
    assert re.search(r"ind\.cora\.x +missing", done.stdout)


def test_verify_of_many_files_shows_a_few(tmp_path: Path) -> None:
    source = corpus("webnlg")
    done = structpe("data", "get", "webnlg-2.0", "--to", tmp_path, "--from", source)
    if done.returncode:
        pytest.skip("there is no copy of WebNLG 2.0")
    shown = output("data", "verify", "webnlg-2.0", "--to", tmp_path)
    assert len(shown.splitlines()) < 30
    assert "more; --all shows them" in shown
    assert len(output("data", "verify", "webnlg-2.0", "--to", tmp_path, "--all").splitlines()) > 200
