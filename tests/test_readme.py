"""The README's Python runs, from top to bottom, as one session in the repository's folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from structpe.positions import MODELS

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 4
    session: dict[str, object] = {"__name__": "readme"}
    known = set(MODELS)
    try:
        for number, block in enumerate(blocks, start=1):
            exec(compile(block, f"README.md, block {number}", "exec"), session)
    finally:
        for name in set(MODELS) - known:
            MODELS.forget(name)
