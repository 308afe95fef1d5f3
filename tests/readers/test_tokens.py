from __future__ import annotations

import pytest

from structpe.errors import StructureError
from structpe.formats import read


def test_a_line_is_a_path(write):
    items = read(write("a.tokens", "the  dog barks\n.\n"))
    assert items[0].structure.nodes == ("the", "dog", "barks")
    assert items[0].structure.edges.tolist() == [[0, 1], [1, 2]]
    assert items[0].structure.features["span"].tolist() == [[0, 3], [5, 8], [9, 14]]
    assert items[0].metadata == {"text": "the  dog barks"}
    assert [item.id for item in items] == ["1", "2"]


def test_a_blank_line_is_a_bad_item_and_counts(write):
    file = write("a.tokens", "a\n\nb\n")
    with pytest.raises(StructureError, match=r"a\.tokens: item 2: line 2: the graph has no node"):
        read(file)
    assert [item.id for item in read(file, on_error="skip")] == ["1", "3"]


def test_only_a_line_feed_ends_a_line(write):
    assert read(write("a.tokens", "a\u2028b c"))[0].metadata["text"] == "a\u2028b c"
