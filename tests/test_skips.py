"""The summary of what was skipped: grouped, counted, and before pytest's own last line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.skips import lines

ROOT = Path(__file__).parents[1]


def test_reasons_are_grouped_and_counted() -> None:
    given = [*["Skipped: needs ../shared/data: a"] * 2, *(f"Skipped: needs ../shared/data: {c}" for c in "bcdef")]
    assert lines([*given, "Skipped: only Linux says so", "could not import 'dgl': No module named 'dgl'"]) == [
        "9 skipped:",
        "  7: needs ../shared/data (a, b, c, d, and 2 more)",
        "  1: could not import 'dgl' (No module named 'dgl')",
        "  1: only Linux says so",
    ]


def test_a_run_says_what_it_skipped(tmp_path: Path) -> None:
    written = "import pytest\n\n\n@pytest.mark.parametrize('name', ['x', 'y'])\ndef test_one(name: str) -> None:\n"
    (tmp_path / "test_few.py").write_text(f"{written}    pytest.skip(f'needs golden files: {{name}}')\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.skips", "-p", "no:cacheprovider", "test_few.py"]
    ran = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    told = ran.stdout.splitlines()
    assert told[-3:-1] == ["2 skipped:", "  2: needs golden files (x, y)"]
    assert told[-1].startswith("2 skipped in ")
