from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.datasets.serving import Server, serving

# importing ogb asks for a newer version in a thread, which warns, during any test, if there is no network
os.environ.setdefault("OUTDATED_IGNORE", "1")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A web server of this machine, which is reached without a proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with serving() as found:
        yield found
