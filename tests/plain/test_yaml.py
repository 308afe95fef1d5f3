"""YAML: good texts say what PyYAML says of them; bad ones end in one error with line and column, at once."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from structpe.errors import ConfigError
from structpe.plain import from_yaml, to_yaml
from tests.examples import examples
from tests.representatives import only
from tests.together import together

ROOT = Path(__file__).parents[2]
FILES = sorted(
    file
    for folder in ("structpe/datasets/cards", "examples", "experiments", "datasets")
    for file in (ROOT / folder).rglob("*.yaml")
)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=6)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_there_are_files() -> None:
    assert len(FILES) > 60


@pytest.mark.parametrize("file", only(FILES, *FILES[::5]), ids=lambda file: file.name)
def test_our_files_say_what_another_loader_reads(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert from_yaml(text) == yaml.safe_load(text)


@examples(30)
@given(PLAIN)
def test_what_is_dumped_is_read_again(data: object) -> None:
    assert from_yaml(to_yaml(data)) == data


WORDS = (
    *(
        "",
        "~",
        "yes",
        "017",
        "0x1F",
        "1_000",
        "1:30",
        ".5",
        "1.5e+3",
        "-.inf",
        "! 12",
        "!!str 12",
        "x: '<<'",
        "'<<': 3",
        '"<<": {a: 1}',
    ),
    *("a: &x 1\nb: *x", "|\n a\n", "- &a {x: 1, y: 2}\n- {<<: *a, y: 3}"),
    "a: &a {x: 1}\nb: &b {x: 2}\nc: {<<: [*a, *b], z: 1}",
)


@together("text", WORDS)
def test_words_with_a_meaning(text: str) -> None:
    assert from_yaml(text) == yaml.safe_load(text)


def test_numbers_with_an_exponent_need_no_point() -> None:
    assert from_yaml("[1e3, -1E-3, .5e2, 1.e+5, 1.5e3]") == [1000.0, -0.001, 50.0, 100000.0, 1500.0]
    assert from_yaml("['1e3', e3, 1e, 1e3x, 0x1e3]") == ["1e3", "e3", "1e", "1e3x", 0x1E3]
    assert from_yaml(to_yaml({"name": "1e3", "1e3": 1e3})) == {"name": "1e3", "1e3": 1000.0}


def test_dates_stay_texts() -> None:
    assert from_yaml("[2020-01-02, 2020-99-99, 2001-12-14t21:59:43.10-05:00]") == [
        "2020-01-02",
        "2020-99-99",
        "2001-12-14t21:59:43.10-05:00",
    ]


@together(
    "text, message",
    [
        ("a: !!int x", "line 1, column 4: 'x' is not of the type int; correct it"),
        ("a: !!float x", "line 1, column 4: 'x' is not of the type float; correct it"),
        ("a: !!bool x", "line 1, column 4: 'x' is not of the type bool; correct it"),
        (
            "a:\n  b: !!python/object:os.system x",
            "line 2, column 6: the tag 'tag:yaml.org,2002:python/object:os.system'",
        ),
        ("!!set {a}", "line 1, column 1: the tag 'tag:yaml.org,2002:set' is not known; leave it out"),
        ("x: &a [*a]", "line 1, column 8: the alias 'a' is a part of itself; write it out"),
        ("x: *a", "line 1, column 4: the alias 'a' has no anchor; write it out"),
        ("a: 1\nb: 2\na: 3", "line 3, column 1: the key 'a' is given twice; keep one of them"),
        ("{1: a}", "line 1, column 2: the key 1 is not a text; put it in quotes"),
        ("{[1]: a}", "line 1, column 2: the key is not a text; put it in quotes"),
        ("{<<: 3}", "line 1, column 6: '<<' merges mappings; give one, or a list of them"),
        ("a\n--- \nb", "line 2, column 1: a second document begins here; keep one"),
        ('"a\\0b"', "line 1, column 1: the text holds U+0000; leave it out"),
        ("a: 1\nb: \0", "the text is not YAML: the character U+0000 may not be in it (line 2, column 4)"),
        ("a: \ud800", "the text is not YAML: the character U+D800 may not be in it (line 1, column 4)"),
        (
            "steps: 1" + 30 * "0",
            "line 1, column 8: 1000000000000000000000000000000 is beyond 64 bits; give a smaller number",
        ),
        ("9" * 5000, f"line 1, column 1: '{'9' * 40}' is not of the type int; correct it"),
        ("1" + ":1" * 5000, f"line 1, column 1: '{('1' + ':1' * 20)[:40]}' is not of the type int; correct it"),
        ("[" * 5000, "line 1, column 101: lists and mappings are nested deeper than 100; make it flatter"),
        ("- " * 5000 + "a", "line 1, column 201: lists and mappings are nested deeper than 100; make it flatter"),
        (ALIASES, "line 6, column 12: more than 100000 values, with those of aliases; use fewer"),
        ("- a\n" * 200_000, "line 100000, column 3: more than 100000 values, with those of aliases; use fewer"),
        ("#" * (1 << 21), "the text has 2097152 characters, 1048576 are allowed; is it the right one?"),
    ],
)
def test_bad_texts_are_explained(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_yaml(text)
    assert str(caught.value).startswith(message)


@together("text", ["a: [", "a: b: c", "a: 'b", "`a", "%YAML 3.0\n---\na", "a: b\n\tc: d", '"\\ud800"', "}"])
def test_what_is_no_yaml_says_where(text: str) -> None:
    with pytest.raises(ConfigError, match=r"the value is not YAML: .+ \(line \d+, column \d+\)$"):
        from_yaml(text, "the value")


def test_the_slow_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every build of PyYAML has the parser in C."""
    monkeypatch.delattr(yaml, "CSafeLoader")
    text = (ROOT / "examples" / "study.yaml").read_text(encoding="utf-8")
    assert from_yaml(text) == yaml.safe_load(text)
    for bad in (ALIASES, "[" * 5000, "a: 'b", "x: *a"):
        with pytest.raises(ConfigError, match=r"line \d+, column \d+"):
            from_yaml(bad)
