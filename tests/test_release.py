"""What a release is made of: the wheel, its version, whom to cite."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import structpe
from structpe.datasets import CorpusError, sample
from structpe.datasets.samples import PLACES, write_samples
from structpe.plain import from_yaml
from tests.datasets import SAMPLES
from tests.modules import ROOT

CITATION: Any = from_yaml((ROOT / "CITATION.cff").read_text(encoding="utf-8"), "CITATION.cff")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builders = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("dist")
    return Path(next(iter(builders.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"]))))


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0] for name in names} == {"structpe", f"structpe-{structpe.__version__}.dist-info"}
    own = {file for file in (ROOT / "structpe").rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    expected = {str(file.relative_to(ROOT)) for file in own}
    samples = {name for name in names if name.startswith("structpe/samples/")}
    assert {name for name in names if ".dist-info/" not in name} - samples == expected
    assert {"structpe/py.typed", "structpe/references/raffel2020.bib"} <= names
    assert wheel.stat().st_size < 2_000_000


def test_the_wheel_has_every_sample(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {
            name.removeprefix("structpe/samples/"): archive.read(name)
            for name in archive.namelist()
            if name.startswith("structpe/samples/")
        }
    files = {}
    for card in SAMPLES.glob("*/card.yaml"):
        described: Any = from_yaml(card.read_text(encoding="utf-8"), "card")
        for name in [file["name"] for file in described["files"]]:
            files[f"{card.parent.name}/{name}"] = card.parent / name
    assert len(files) == 9
    files |= {f"{card.parent.name}/card.yaml": card for card in SAMPLES.glob("*/card.yaml")}
    files |= {f"examples/{file.name}": file for file in (ROOT / "examples").glob("*.yaml")}
    assert inside == {name: file.read_bytes() for name, file in files.items()}


def test_a_sample_is_found_by_its_name() -> None:
    assert sample("amr_sample/test.txt") == PLACES[1] / "amr_sample" / "test.txt"
    assert sample("kg_sample").is_dir()
    with pytest.raises(CorpusError, match=r"^there is no sample 'amr'; give one of amr_sample, diameters_sample, kg_"):
        sample("amr")


def test_the_files_of_the_pages_are_written_once(tmp_path: Path) -> None:
    written = write_samples(tmp_path)
    assert {str(file.relative_to(tmp_path)) for file in written} >= {
        "datasets/kg_sample/card.yaml",
        "examples/amr.yaml",
    }
    assert all(file.read_bytes() == (ROOT / file.relative_to(tmp_path)).read_bytes() for file in written)
    assert not [file for file in written if file.suffix == ".py"]
    with pytest.raises(CorpusError, match=r"datasets is there already, and nothing was written; give another folder$"):
        write_samples(tmp_path)


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert CITATION["version"] == structpe.__version__
    assert CITATION["license"] == project["license"]


def test_the_citation_invents_nobody() -> None:
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["type"] == "software"
    assert {"message", "title", "abstract", "keywords"} <= CITATION.keys()
    assert CITATION["authors"] == [{"name": "The structpe developers"}]
