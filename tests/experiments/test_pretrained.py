"""A language model in two parts is fine-tuned on graphs: tried with a small random Llama."""

from __future__ import annotations

import copy
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import structpe
from structpe.transforms import levi, linearise
from tests.experiments.script import script
from tests.modules import ROOT

AMR = """# ::id {0}.1
# ::snt The boy wants to go .
(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))

# ::id {0}.2
# ::snt A girl who sings sleeps .
(s / sleep-01 :ARG0 (g / girl :ARG0-of (s2 / sing-01 :polarity -)))

# ::id {0}.3
# ::snt Chapter 7 .
(c / chapter :mod 7)

# ::id {0}.4
# ::snt It rains .
(r / rain-01)
"""


@pytest.fixture(scope="module")
def run() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "experiments" / "pretrained"))
    try:
        yield script("pretrained/run.py")
    finally:
        sys.path.remove(str(ROOT / "experiments" / "pretrained"))


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "amr" / "little_prince").mkdir(parents=True)
    for split in ("training", "dev.rebuilt", "test"):
        file = folder / "amr" / "little_prince" / f"amr-bank-struct-v1.6-{split}.txt"
        file.write_text(AMR.format(split), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    fast = Tokenizer(models.BPE({letter: i for i, letter in enumerate([*letters, "<end>"])}, []))
    fast.pre_tokenizer, fast.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=fast, eos_token="<end>", pad_token="<end>").save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    LlamaForCausalLM(
        LlamaConfig(vocab_size=257, num_key_value_heads=2, eos_token_id=256, pad_token_id=256, **sizes)
    ).save_pretrained(folder)
    return folder


def halves(run: ModuleType, checkpoint: Path, row: str) -> Any:
    model, tokenizer = run.loaded(checkpoint)
    return run.Halves(model, 1, run.prepared(model, tokenizer, 1, **run.ROWS[row]))


def test_tokens_are_the_nodes_of_the_levi_graph(run: ModuleType, corpora: Path) -> None:
    given = structpe.read(str(corpora / "amr" / "little_prince" / "amr-bank-struct-v1.6-test.txt"), "amr").structures
    graph, other = given[0], given[1]
    sequence, whole = linearise(graph), levi(graph)
    assert sequence.nodes == ("want-01", ":ARG0", "boy", ":ARG1", "(", "go-02", ":ARG0", "boy", ")")
    found = sys.modules["prompts"].units(graph, sequence)
    assert [unit if unit < 0 else whole.nodes[unit] for unit in found] == [
        "want-01", ":ARG0", "boy", ":ARG1", -1, "go-02", ":ARG0", "boy", -1,
    ]  # fmt: skip
    assert found[2] == found[7]  # one boy, mentioned twice
    assert found[1] != found[6]  # two edges
    found = sys.modules["prompts"].units(other, linearise(other))
    labels = [unit if unit < 0 else levi(other).nodes[unit] for unit in found]
    assert len(set(found) - {-1}) == 2 * other.size - 1
    assert labels[:2] == ["sleep-01", ":ARG0"]


@pytest.mark.parametrize("row", ["sequence", "structure"])
def test_the_upper_layers_on_what_the_lower_ones_made_are_the_whole_model(
    run: ModuleType, checkpoint: Path, corpora: Path, tmp_path: Path, row: str
) -> None:
    both = halves(run, checkpoint, row)
    prompts = run.prompts(corpora, "train", both.collate.tokenizer)
    for number in both.model.parameters():
        if number.ndim == 3:  # positions that matter
            torch.nn.init.normal_(number.data)
    below, batch = both.below(prompts, tmp_path / "below.pt"), both.batch(prompts)
    labels = batch.pop("labels")
    whole = both.model(**batch, use_cache=False).logits[:, -5:]
    assert labels.shape[1] == batch["input_ids"].shape[1]
    torch.testing.assert_close(both.logits(dict(batch), below, 5), whole, rtol=0, atol=1e-5)
    assert len(both.model.model.layers) == 3


def test_a_killed_training_goes_on_to_the_same_numbers(
    run: ModuleType, checkpoint: Path, corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget, tuning = run.Budget(4, batch=2, warmup=1, keep=2), sys.modules["tuning"]

    def trained(file: Path) -> Any:
        both = halves(run, checkpoint, "structure")
        prompts = run.prompts(corpora, "train", both.collate.tokenizer)
        made = run.Tuning(both, 0, budget, file)
        made.train(prompts, both.below(prompts, tmp_path / "below.pt"))
        return made

    straight, write = trained(tmp_path / "straight.pt"), tuning.atomic_write

    def killed(path: Path, save: Any) -> None:
        write(path, save)
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "atomic_write", killed)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "killed.pt")
    monkeypatch.setattr(tuning, "atomic_write", write)
    resumed = trained(tmp_path / "killed.pt")
    assert resumed.curve == straight.curve
    assert len(resumed.curve) == 4
    for name, number in straight.numbers.items():
        assert torch.equal(number, resumed.numbers[name])


def test_rows_differ_in_what_is_trained_and_begin_alike(
    run: ModuleType, checkpoint: Path, corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    results = tmp_path / "results.jsonl"
    words = ["run.py", "--model", str(checkpoint), "--data", str(corpora), "--steps", "3", "--frozen", "1"]
    words += ["--written", "2", "--out", str(tmp_path / "out"), "--results", str(results)]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(run, "LONGEST_TEXT", 4)
    with pytest.raises(
        ValueError, match="there are 3 graphs to train on, and a batch has 8; give more, or longer ones"
    ):
        run.main()  # the others are longer than LONGEST, letter by letter
    results.unlink(missing_ok=True)
    (tmp_path / "out" / "below-1-train-3.pt").unlink()
    monkeypatch.setattr(run, "LONGEST", 400)
    monkeypatch.setattr(run, "Budget", lambda steps: sys.modules["tuning"].Budget(steps, batch=4))
    run.main()
    found = {each["row"]: each for each in map(json.loads, results.read_text(encoding="utf-8").splitlines())}
    assert list(found) == list(run.ROWS)
    weights = found["sequence"]["parameters"]["trained"]
    positions = found["structure"]["parameters"]["positions"]
    assert weights > positions > 0
    assert found["structure"]["parameters"]["trained"] == weights + positions
    assert found["structure, weights frozen"]["parameters"] == {"trained": positions, "positions": positions}
    assert found["untrained"]["curve"] == []
    first = [found[row]["curve"][0] for row in list(run.ROWS)[1:]]
    assert max(first) - min(first) < 1e-5
    assert len({found[row]["scores"]["test"]["nats"] for row in run.ROWS}) == 4
    capsys.readouterr()
    run.main()
    assert capsys.readouterr().out.count("there already") == 4
    table = run.table(results)
    assert "| sequence | 1 (not ranked) |" in table
    assert "| untrained | - |" in table
    again = copy.deepcopy(found)
    again["structure"]["scores"]["test"]["nats"] -= 0.5
    for row in ("sequence", "structure"):
        run.keep({**again[row], "seed": 1}, results)
    first = found["sequence"]["scores"]["test"]["nats"] - found["structure"]["scores"]["test"]["nats"]
    assert run.gain(run.kept(results)) == pytest.approx([first, first + 0.5])
    assert f"is lower by {first:.4f}, {first + 0.5:.4f} nats" in run.table(results)
    mean, deviation, _, seeds, p = (cell.strip() for cell in run.row_of_gain(results).split("|")[3:8])
    assert (mean, deviation, seeds) == (f"{first + 0.25:+.4f}", "0.3536", "2")
    t = (first + 0.25) / 0.25  # mean / (deviation / sqrt 2), with one degree of freedom
    assert float(p) == pytest.approx(1 - 2 * math.atan(t) / math.pi, rel=0.1)
