"""The app: that it runs from beginning to end, and what it draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from structpe.errors import ReadError
from structpe.formats import READERS
from structpe.pictures import PictureError
from structpe.pictures.app_callbacks import ANY, picture, structures
from tests.tasks.graph_to_text.tiny import AMR


def test_it_runs() -> None:
    from structpe.pictures.app import app

    outputs, defined = app.run()
    assert len(outputs) == 5
    assert [str(s) for s in defined["found"]] == ["Structure(7 nodes, 6 directed edges, 7 units, 'an example')"]
    assert defined["reader"].value == ANY
    assert set(defined["reader"].options) == {ANY, *READERS}
    assert defined["drawn"].startswith(b"\x89PNG")


@pytest.mark.slow
def test_it_draws_what_is_chosen() -> None:
    found = structures(str(AMR / "test.txt"), "amr")
    assert len(found) == 24
    drawn = picture(found, 2, ["distance", "label-path"], "graformer")
    assert drawn.startswith(b"\x89PNG")
    assert drawn != picture(found, 2, ["distance"])


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match=r"there are 1 structures, 0..0; 3 is out of range"):
        picture(structures(""), 3)
    with pytest.raises(ReadError, match="there is no such file or folder"):
        structures(str(tmp_path / "none.txt"))
