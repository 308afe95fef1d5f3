"""Draw the pictures of docs/pictures.md from the samples. ``python docs/figures/pictures.py`` renews pictures-*.png.

The run with the learned bias is trained here, for about two minutes, in a temporary folder.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from structpe import Dims, Encoding, read
from structpe.encodings import RandomWalk
from structpe.pictures import Setting, begin, load, pattern, rank, save, show, similarity
from structpe.pictures.setting import model_of

FOLDER = Path(__file__).parent
SAMPLES = FOLDER.parents[1] / "datasets"
SIZES = Dims(64, 4, 1)
T5 = {"name": "t5", "encoding": "distance"}


def main() -> None:
    """Write all of them."""
    parse()
    molecule()
    learned()
    figures()


def parse() -> None:
    """A dependency tree, its distances, and the biases that Graformer makes of them before training."""
    structures = read(SAMPLES / "trees_sample" / "sample.conllu").structures
    picture = show(structures[2], [begin("graformer", SIZES, lambda: structures)])
    save(picture, FOLDER / "pictures-parse.png", dots=100)


def molecule() -> None:
    """A molecule and its random walks."""
    items = read(SAMPLES / "molecules_sample" / "molecules.csv")
    (ring,) = [item for item in items if item.metadata["name"] == "caffeine"]
    walks: Encoding = RandomWalk(steps=12)
    save(show(ring.structure, [walks]), FOLDER / "pictures-molecule.png")


def learned() -> None:
    """What T5's bias on distances has learned from graphs and sentences."""
    from structpe.tasks import GraphToTextConfig, train
    from structpe.tasks.config import make

    with tempfile.TemporaryDirectory() as folder:
        given = {
            "data": {
                "train": str(SAMPLES / "amr_sample" / "train.txt"),
                "dev": str(SAMPLES / "amr_sample" / "dev.txt"),
                "reader": "amr",
            },
            "prepare": {"vocabulary": 500},
            "model": {"width": 64, "heads": 4, "encoder_layers": 2, "decoder_layers": 1, "feedforward": 128},
            "position": {**T5, "name": "t5-unshared"},
            "training": {"steps": 1200, "batch_size": 16, "optimiser": {"learning_rate": 0.003, "warmup": 50},
                         "validation": {"every": 400, "metric": "loss"}, "hardware": {"accelerator": "cpu"}},
            "out": f"{folder}/run",
        }  # fmt: skip
        train(make(GraphToTextConfig, given))
        item = read(SAMPLES / "amr_sample" / "test.txt", "amr")[2]
        run = replace(load(f"{folder}/run", item), name="1,200 steps on amr_sample")
        save(show(item.structure, [run]), FOLDER / "pictures-learned.png", dots=90)


def figures() -> None:
    """Those of Chen et al. 2021."""
    setting = Setting(Dims(192, 6, 1), places=128)
    names = ("learned", "sinusoidal", "diet-abs", "t5", "diet-rel")
    values = {name: rank.singular_values(rank.scores(name, setting))[0] for name in names}
    save(rank.draw(values, {"d_h": 32, "2 d_h": 64}, "Rank of a head: all scores"), FOLDER / "pictures-rank.png")
    two = replace(setting, structure=pattern.segmented())
    weights = pattern.pattern(["diet-rel", "segment-bias"], two)
    save(pattern.draw(weights, "diet-rel + segment-bias", [16]), FOLDER / "pictures-segments.png")
    found = {
        name: similarity.cosines(similarity.vectors(model_of(name, setting), setting.read))
        for name in ("sinusoidal", "learned", "universal-sinusoidal")
    }
    save(similarity.draw(found, "Cosines of what is added to the input"), FOLDER / "pictures-similarity.png", dots=100)


if __name__ == "__main__":
    main()
