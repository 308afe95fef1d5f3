"""What a release is made of: the wheel, its version, whom to cite."""

from __future__ import annotations

import os
import subprocess
import sys
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
    assert len(files) == 17
    files |= {f"{card.parent.name}/card.yaml": card for card in SAMPLES.glob("*/card.yaml")}
    files |= {f"examples/{file.name}": file for file in (ROOT / "examples").glob("*.yaml")}
    assert inside == {name: file.read_bytes() for name, file in files.items()}


@pytest.fixture(scope="module")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of packages after an editable installation."""
    pytest.importorskip("editables")
    builders, folder = pytest.importorskip("hatchling.builders.wheel"), tmp_path_factory.mktemp("editable")
    (built,) = builders.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["editable"])
    zipfile.ZipFile(built).extractall(folder / "site")
    return folder / "site"


def run_in_an_editable_installation(site: Path, code: str, folder: Path) -> str:
    """What a program prints that finds the checkout by nothing but the installation."""
    begin = f"""
import pathlib, site, sys
sys.path[:] = [p for p in sys.path if not (pathlib.Path(p) / "datasets").is_dir()]
sys.modules.pop("_editable_impl_structpe", None)
sys.path.insert(0, {str(site)!r})
site.addsitedir({str(site)!r})
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if not (Path(p) / "datasets").is_dir())
    found = subprocess.run(
        [sys.executable, "-c", begin + code], capture_output=True, text=True, cwd=folder, env=environment
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_an_editable_installation_has_the_package_and_nothing_else(editable: Path, tmp_path: Path) -> None:
    """Hugging Face's libraries take any folder named datasets for their own package."""
    code = """
import importlib.util, structpe
print(structpe.__file__)
print(*(importlib.util.find_spec(name) for name in ("datasets", "experiments", "examples", "docs")))
"""
    where, others = run_in_an_editable_installation(editable, code, tmp_path).splitlines()
    assert Path(where) == ROOT / "structpe" / "__init__.py"
    assert others == "None None None None"
    assert not (editable / "structpe").exists(), "which would be imported in place of the checkout"


@pytest.mark.slow
def test_the_trainer_of_hugging_face_predicts_in_an_editable_installation(editable: Path, tmp_path: Path) -> None:
    code = """
import torch, structpe, transformers as hf
config = hf.BertConfig(
    hidden_size=8, num_attention_heads=2, num_hidden_layers=1, intermediate_size=8, vocab_size=10, num_labels=2
)
arguments = hf.TrainingArguments(output_dir="out", report_to=[], disable_tqdm=True, use_cpu=True, max_steps=1)
items = [{"input_ids": torch.tensor([1, 2, 3]), "labels": torch.tensor(1)}] * 2
trainer = hf.Trainer(hf.BertForSequenceClassification(config), arguments, train_dataset=items)
trainer.train()
print("shape", trainer.predict(items).predictions.shape)
"""
    assert "shape (2, 2)" in run_in_an_editable_installation(editable, code, tmp_path)


def test_a_sample_is_found_by_its_name() -> None:
    assert sample("amr_sample/test.txt") == PLACES[1] / "amr_sample" / "test.txt"
    assert sample("kg_sample").is_dir()
    with pytest.raises(CorpusError, match=r"^there is no sample 'amr'; give one of amr_sample, diameters_sample, "):
        sample("amr")


def test_the_files_of_the_pages_are_written_once(tmp_path: Path) -> None:
    written = write_samples(tmp_path)
    assert {str(file.relative_to(tmp_path)) for file in written} >= {
        "datasets/kg_sample/card.yaml",
        "examples/amr.yaml",
    }
    assert all(file.read_bytes() == (ROOT / file.relative_to(tmp_path)).read_bytes() for file in written)
    assert not [file for file in written if file.suffix == ".py"]
    with pytest.raises(CorpusError, match=r"datasets exists already, and nothing was written; give another folder$"):
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
