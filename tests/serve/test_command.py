"""``structpe serve`` before it serves: addresses, tokens, limits, extras."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from structpe.cli.serve import TOKEN, is_local, token_of
from tests.cli.running import complaint


def test_other_machines_need_a_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    told = complaint("serve", tmp_path, "--host", "0.0.0.0")
    assert told == (
        "--host 0.0.0.0 can be reached from other machines, and there is no token; put one of 16 characters or more "
        "into STRUCTPE_TOKEN or a file, for --token-file"
    )
    (tmp_path / "token").write_text("  0123456789abcdef\n")
    assert token_of(tmp_path / "token") == "0123456789abcdef"
    (tmp_path / "token").write_text("short")
    assert f"the token of {tmp_path / 'token'} has 5 characters; give 16" in complaint(
        "serve", tmp_path, "--token-file", tmp_path / "token"
    )
    assert (token_of(None), is_local("::1"), is_local("127.0.0.2"), is_local("localhost")) == ("", True, True, True)
    assert not any(map(is_local, ("0.0.0.0", "::", "example.org", "")))
    monkeypatch.setenv(TOKEN, "fedcba9876543210")
    assert token_of(None) == "fedcba9876543210"
    monkeypatch.setenv(TOKEN, "with a blank and more")
    assert "the token of STRUCTPE_TOKEN has 21 characters" in complaint("serve", tmp_path)


def test_what_is_wrong_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert complaint("serve", tmp_path, "--port", "70000") == "--port is 70000; give one of 0..65535"
    assert complaint("serve", tmp_path, "--port", "0", "--batch", "0") == "--batch is 0; give a number larger than 0"
    assert complaint("serve", tmp_path, "--port", "0", "--wait", "2") == "--wait is 2.0; give seconds from 0 to 1"
    assert "holds no config.yaml; give the folder of a run" in complaint("serve", tmp_path, "--port", "0", code=1)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    told = complaint("serve", tmp_path, code=1)
    assert told == "'fastapi' is needed for this and is not installed: pip install 'structpe[serve]'"
