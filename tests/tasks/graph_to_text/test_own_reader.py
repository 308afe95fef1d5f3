"""A run reads new files as its training files, which their suffixes or its configuration have said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from structpe.errors import ConfigError
from structpe.tasks.config import make
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.graph_to_text.generator import Generator
from structpe.tasks.runs.text import GraphToTextRun


def run(folder: Path, **data: Any) -> GraphToTextRun:
    return GraphToTextRun(make(GraphToTextConfig, {"data": data, "out": str(folder / "run")}))


@pytest.mark.parametrize(
    ("data", "reader"),
    [
        ({"train": "a.amr"}, "amr"),
        ({"train": ["a.amr", "b.txt"]}, "amr"),
        ({"train": "folder"}, "webnlg"),
        ({"train": ["folder", "b.xml"]}, "webnlg"),
        ({"train": "a.amr", "reader": "tokens"}, "tokens"),
        ({"train": ["a.amr", "b.xml"]}, None),
        ({"train": "gone"}, None),
        ({"train": "gone.amr"}, "amr"),
    ],
)
def test_it_is_that_of_the_training_files(
    data: dict[str, Any], reader: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    for name in ("folder/a.xml", "folder/README", "a.amr", "b.txt", "b.xml"):
        Path(name).touch()
    kept = run(tmp_path, **data)
    assert kept.kept.data.reader == reader
    assert kept.reads().reader == reader


def test_without_one_of_its_own_it_must_be_given(tmp_path: Path) -> None:
    several = run(tmp_path, train=["a.amr", "b.xml"], on_error="skip")
    told = (
        r"^the run has no reader of its own, as it has learned from items, or its training files are of several formats"
    )
    with pytest.raises(ConfigError, match=told):
        several.reads().but()
    assert several.reads().but("amr") == ("amr", {}, "skip", False)
    with pytest.raises(ConfigError, match=r"^the run has no reader of its own"):
        Generator(None, several.kept, None).generate("a.amr")  # type: ignore[arg-type]


def test_options_belong_to_the_reader(tmp_path: Path) -> None:
    own = run(tmp_path, train="a.conllu", options={"graph": "enhanced"}, on_error="skip")
    assert own.reads().but() == ("conllu", {"graph": "enhanced"}, "skip", False)
    assert own.reads().but("conllu") == ("conllu", {}, "skip", False)
    assert own.reads().but("conllu", {"strict": False}) == ("conllu", {"strict": False}, "skip", False)
    assert own.reads().but(options={"strict": False}).options == {"graph": "enhanced", "strict": False}
    assert own.reads().but("webnlg", {"lang": "en"}, "raise") == ("webnlg", {"lang": "en"}, "raise", False)
