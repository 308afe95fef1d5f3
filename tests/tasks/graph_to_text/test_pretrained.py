"""Pretrained models learn to write: they begin as the checkpoint computes, resume to the same bits, are used alone."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from torch.nn import functional

import structpe
from structpe.errors import ConfigError, PositionError, StoreError, StructPEError
from structpe.formats import read
from structpe.nn.search import SearchConfig
from structpe.pictures.head_patterns import load as load_for_pictures
from structpe.pictures.style import PictureError
from structpe.tasks.graph_to_text.config import InjectConfig, PretrainedTextConfig
from structpe.tasks.graph_to_text.pretrained import PretrainedTextModel
from structpe.tasks.runs import load_config, run_of, train
from structpe.tasks.runs.text import PretrainedTextRun, text_run
from structpe.tasks.training.lightning_module import TaskModule
from structpe.tasks.training.result import load_weights, save_weights
from structpe.transforms import linearise
from structpe.transforms.texts import with_readable_labels
from tests.adapters.models import CONFIGS, HEADED
from tests.representatives import only
from tests.tasks.graph_to_text.checkpoints import POSITION, checkpoint, tokenizer, tuned

NAMES = ("t5", "bart", "llama", "gpt2")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def of(name: str) -> Path:
        if name not in made:
            made[name] = checkpoint(tmp_path_factory.mktemp(name), name)
        return made[name]

    return of


def before(config: PretrainedTextConfig) -> tuple[PretrainedTextRun, PretrainedTextModel]:
    """The run, and the model before training."""
    run = PretrainedTextRun(config)
    return run, run.untrained(run.learn(run.read()))


def item(config: PretrainedTextConfig, number: int = 0) -> Any:
    assert isinstance(config.data.train, str)
    return read(config.data.train, "amr").items[number]


def literally(name: str, folder: Path, source: str, text: str) -> torch.Tensor:
    """The loss of the checkpoint itself, summed over the units of a text, as Hugging Face computes it."""
    model, words = HEADED[name].from_pretrained(folder).eval(), hf.AutoTokenizer.from_pretrained(folder)
    if name in ("t5", "bart"):
        labels = words(text, return_tensors="pt")["input_ids"]
        found = model(**words(source, return_tensors="pt"), labels=labels).loss * labels.numel()
    else:
        whole = words(f"{source} {text}</s>", return_tensors="pt")["input_ids"]
        read = words(source, return_tensors="pt")["input_ids"].shape[1]
        logits = model(input_ids=whole).logits[0, read - 1 : -1]
        found = functional.cross_entropy(logits, whole[0, read:], reduction="sum")
    loss: torch.Tensor = found.detach()
    return loss


@pytest.mark.parametrize("name", only(NAMES, "t5", "llama"))
def test_before_training_the_loss_is_that_of_the_checkpoint(name: str, given: Any, tmp_path: Path) -> None:
    config = tuned(tmp_path, given(name))
    _, writer = before(config)
    writer.model.eval()
    first = item(config)
    line = " ".join(linearise(with_readable_labels(first.structure)).nodes)
    expected = literally(name, given(name), f"graph: {line} Text:", first.texts[0])
    batch = writer.collate(writer.examples([first]))
    total, count = writer.loss(batch, 0.0)
    torch.testing.assert_close(total.detach(), expected, rtol=1e-5, atol=1e-5)
    assert count == (batch.labels != -100).sum()
    # Padded in a batch with others it is the same, and smoothing takes a part of it.
    three = [item(config, number) for number in range(3)]
    alone = [writer.loss(writer.collate([each]), 0.0)[0] for each in writer.examples(three)]
    together = writer.loss(writer.collate(writer.examples(three)), 0.0)[0]
    torch.testing.assert_close(together, sum(alone), rtol=1e-5, atol=1e-5)
    assert writer.loss(batch, 0.5)[0] != total


@pytest.mark.parametrize("name", only(["t5", "llama"], "llama"))
def test_a_run_that_was_interrupted_ends_with_the_same_bits(name: str, given: Any, tmp_path: Path) -> None:
    config = tuned(
        tmp_path, given(name), training={"validation": {"metric": "chrf"}}, dev_texts=2, search={"longest": 3}
    )
    result = train(config)
    assert set(result.best) == {"loss", "bleu", "chrf"}
    whole = {file: (tmp_path / "run" / file).read_bytes() for file in ("model.safetensors", "metrics.csv")}
    losses = [float(line.split(",")[2]) for line in whole["metrics.csv"].decode().split() if ",loss," in line]
    assert losses[-1] < losses[0]
    # As if the process had been killed while it wrote its last checkpoint.
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000004")
    (tmp_path / "run" / "result.json").unlink()
    again = train(config)
    assert (again.steps, again.best) == (result.steps, result.best)
    assert whole == {file: (tmp_path / "run" / file).read_bytes() for file in whole}


def test_another_checkpoint_or_tokenizer_is_not_gone_on_with(given: Any, tmp_path: Path) -> None:
    mine = shutil.copytree(given("t5"), tmp_path / "mine")
    config = tuned(tmp_path, mine, training={"steps": 1})
    train(config)
    (tmp_path / "run" / "result.json").unlink()
    model = hf.T5ForConditionalGeneration.from_pretrained(mine)
    torch.nn.init.zeros_(model.shared.weight[3])
    model.save_pretrained(mine)
    with pytest.raises(StoreError, match="have changed since this run began: weights of the checkpoint"):
        train(config)


def test_frozen_only_positions_are_trained_and_at_their_own_rate(given: Any, tmp_path: Path) -> None:
    config = tuned(tmp_path, given("bart"), model={"freeze": True, "position_rate": 10.0}, training={"steps": 2})
    _, writer = before(config)
    learner = TaskModule(writer_task(writer, config), config.training, lambda _: None)  # type: ignore[arg-type, return-value]
    assert {group["initial_lr"] for group in learner.configure_optimizers()["optimizer"].param_groups} == {0.1}
    train(config)
    trained = load_weights(tmp_path / "run" / "model.safetensors", "")
    own = HEADED["bart"].from_pretrained(given("bart")).state_dict()
    moved = {key for key, each in trained.items() if "structpe" in key and each.abs().max() > 0}
    assert moved == {f"model.structpe.encoder.position.{part}.weight" for part in ("keys", "values")}
    assert all(torch.equal(each, own[key.removeprefix("model.")]) for key, each in trained.items() if key not in moved)


def writer_task(writer: PretrainedTextModel, config: PretrainedTextConfig) -> Any:
    from structpe.tasks.graph_to_text.task import GraphToText

    return GraphToText(writer, [], config)


@pytest.mark.parametrize("name", only(NAMES, "llama"))
def test_it_writes_the_same_after_it_is_loaded_without_its_checkpoint(name: str, given: Any, tmp_path: Path) -> None:
    mine = shutil.copytree(given(name), tmp_path / "mine")
    config = tuned(tmp_path, mine)
    run = PretrainedTextRun(config)
    learned = run.learn(run.read())
    writer = run.untrained(learned)
    with torch.no_grad():
        for number, each in enumerate(writer.model.parameters()):
            each.add_(torch.randn(each.shape, generator=torch.Generator().manual_seed(number)), alpha=0.3)
    run.folder.mkdir()
    run.begin(learned)
    save_weights(writer.model, run.folder / "model.safetensors")
    items = [item(config, number) for number in range(4)]
    writer.model.eval()
    for beam in (1, 3):
        search = SearchConfig(beam=beam, longest=6)
        expected = writer.texts(writer.examples(items), search, torch.device("cpu"))
        assert len(set(expected)) > 1
        shutil.rmtree(mine, ignore_errors=True)
        loaded = structpe.load(run.folder, "cpu")
        assert [each.text for each in loaded.generate(items, search)] == expected
        alone = [writer.texts(writer.examples([each]), search, torch.device("cpu"))[0] for each in items]
        assert alone == expected, "padding on the left, and others in the batch, change nothing"


def test_a_trained_run_generates_evaluates_and_can_go_on_as_a_checkpoint(given: Any, tmp_path: Path) -> None:
    config = tuned(tmp_path, given("llama"), inject=[{"position": POSITION, "layers": [1]}], training={"steps": 1})
    train(config)
    assert isinstance(config.data.dev, str)
    generator = structpe.load(config.out, "cpu")
    scores, texts = generator.evaluate(config.data.dev)
    assert [each.id for each in texts] == [each.id for each in generator.generate(config.data.dev)]
    assert scores.bleu_signature
    with pytest.raises(PictureError, match=r"holds a pretrained model, .* output_attentions=True"):
        load_for_pictures(config.out, read(config.data.dev)[0])
    # Saved as Hugging Face's, with its position model, it is a checkpoint for another run.
    model, texts_of = PretrainedTextRun.of(config.out).load()
    model.save_pretrained(tmp_path / "saved")
    hf.AutoTokenizer.from_pretrained(given("llama")).save_pretrained(tmp_path / "saved")
    (tmp_path / "second").mkdir()
    _, writer = before(tuned(tmp_path / "second", tmp_path / "saved", inject=[]))
    assert writer.model.model.structpe["decoder"].layers == (1,)
    for key, each in writer.model.model.state_dict().items():
        assert torch.equal(each, model.state_dict()[key]), key
    assert writer.preparer.encodings == texts_of.encodings


def test_t5s_own_table_in_a_position_model_is_a_graph_language_model(given: Any, tmp_path: Path) -> None:
    encoder = {"position": "glm-global", "start": "checkpoint"}
    decoder = {"position": "t5-causal", "where": "decoder", "start": "checkpoint", "structures": "path"}
    injects = [encoder, decoder]
    run, writer = before(tuned(tmp_path, given("t5"), inject=injects))
    run.check()
    model = writer.model.model
    own = model.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight
    assert torch.equal(model.structpe["encoder"].position.table.weight[0, :32], own)
    assert not own.requires_grad
    assert writer.loss(writer.collate(writer.examples([item(tuned(tmp_path, given("t5")))])), 0.0)[0] > 0


def test_positions_learned_of_the_training_graphs_are_kept(given: Any, tmp_path: Path) -> None:
    config = tuned(tmp_path, given("t5"), inject=[{"position": "zhu-sum"}], prepare={"graph": "plain"})
    run = PretrainedTextRun(config)
    learned = run.learn(run.read())
    assert ":ARG0" in json.dumps(learned.positions)
    run.folder.mkdir()
    run.begin(learned)
    again = run.restore()
    assert again[:4] == learned[:4]
    assert again.tokenizer.to_str() == learned.tokenizer.to_str()


@pytest.mark.parametrize("name", ["t5", "gpt2"])
def test_weights_that_are_used_twice_are_saved_once_and_it_goes_to_other_processes(
    name: str, given: Any, tmp_path: Path
) -> None:
    _, writer = before(tuned(tmp_path, given(name)))
    saved, model = writer.model.state_dict(), writer.model.model
    assert "lm_head.weight" in model.state_dict()
    assert "model.lm_head.weight" not in saved
    other = pickle.loads(pickle.dumps(writer.model))
    with torch.no_grad():
        for each in other.parameters():
            each.zero_()
    other.load_state_dict(saved)
    for key, each in model.state_dict().items():
        assert torch.equal(other.model.state_dict()[key], each), key
    assert other.model.get_output_embeddings().weight is other.model.get_input_embeddings().weight


# What is wrong.

WRONG: list[tuple[dict[str, Any], type[StructPEError], str]] = [
    ({"model": {"options": {"no_such": 1}}}, ConfigError, "type 't5' has no option 'no_such' to change"),
    ({"inject": [{"position": "shaww"}]}, PositionError, r"inject\[0\]: .*no position model named 'shaww'. Did you"),
    ({"inject": [{"position": POSITION, "layers": [7]}]}, PositionError, r"inject\[0\]: there is no layer 7; the enc"),
    ({"inject": [{"position": "alibi"}]}, PositionError, r"inject\[0\]: .*has no numbers to learn.*use start='own'"),
    ({"inject": [{"position": POSITION}] * 2}, PositionError, r"inject\[1\]: the encoder has a position model already"),
    ({"inject": [{"position": POSITION, "start": "checkpoint"}]}, PositionError, "has no table of T5's buckets; those"),
    (
        {"inject": [{"position": POSITION, "where": "decoder"}]},
        ConfigError,
        r"inject\[0\]: .*not units of the graph; give",
    ),
    ({"prepare": {"longest_source": 3}}, StructPEError, "tokens, longest_source is 3; raise prepare.longest_source"),
    ({"prepare": {"longest_target": 1}}, ConfigError, "all training texts are longer than prepare.longest_target"),
]


@pytest.mark.parametrize(("keys", "error", "message"), WRONG)
def test_what_is_wrong_in_a_configuration_is_said(
    keys: dict[str, Any], error: type[StructPEError], message: str, given: Any, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        train(tuned(tmp_path, given("t5"), **keys))


def test_checkpoints_that_are_not_there(given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    config = tuned(tmp_path, given("t5"))

    def named(name: str, key: str = "model") -> PretrainedTextConfig:
        return changed_part(config, key, **{"pretrained" if key == "model" else "tokenizer": name})

    message = (
        r"^model\.pretrained: there is no folder no-such-model, and no checkpoint of this name could be fetched "
        r"\(.+\); check the name\. Without a network, fetch it on a machine with one \(hf download no-such-model"
    )
    with pytest.raises(StoreError, match=message):
        train(named("no-such-model"))
    with pytest.raises(StoreError, match=r"^prepare\.tokenizer: there is no folder no-such-words, and no tokenizer of"):
        train(named("no-such-words", "prepare"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=r"model\.pretrained: the folder .*empty has no checkpoint that can be read"):
        train(named(str(tmp_path / "empty")))
    bare = tmp_path / "bare"
    hf.AutoConfig.from_pretrained(given("t5")).save_pretrained(bare)
    with pytest.raises(StoreError, match=r"^prepare\.tokenizer: the folder .*bare has no tokenizer that can be read"):
        train(named(str(bare)))
    with pytest.raises(StoreError, match=r"bare has no weights \(model.safetensors\) that can be read"):
        train(changed_part(named(str(bare)), "prepare", tokenizer=str(given("t5"))))


def changed_part(config: PretrainedTextConfig, key: str, **values: Any) -> PretrainedTextConfig:
    return replace(config, **{key: replace(getattr(config, key), **values)})  # type: ignore[arg-type]


def test_checkpoints_that_cannot_write(given: Any, tmp_path: Path) -> None:
    encoder = tmp_path / "bert"
    HEADED["bert"](CONFIGS["bert"]()).save_pretrained(encoder)
    with pytest.raises(ConfigError, match="is a model of the type 'bert', which does not write texts; give an encoder"):
        train(tuned(tmp_path, encoder))
    small = tmp_path / "small"
    HEADED["t5"](CONFIGS["t5"]()).save_pretrained(small)
    with pytest.raises(ConfigError, match="has 320 tokens, the model 60; give that of the checkpoint"):
        train(tuned(tmp_path, small, prepare={"tokenizer": str(given("t5"))}))
    with pytest.raises(
        ConfigError, match=r"prepare\.suffix is empty; a model that is a decoder alone .*suffix=' Text:'"
    ):
        train(tuned(tmp_path, given("llama"), prepare={"suffix": " "}))
    with pytest.raises(ConfigError, match=r"model\.freeze is true and inject is empty, and nothing would be trained"):
        tuned(tmp_path, given("t5"), model={"freeze": True}, inject=[])
    with pytest.raises(ConfigError, match=r"model\.position_rate is 0\.0; give a number above 0"):
        tuned(tmp_path, given("t5"), model={"position_rate": 0.0})
    endless: Any = hf.PreTrainedTokenizerFast
    endless(tokenizer_object=tokenizer()).save_pretrained(tmp_path / "endless")
    with pytest.raises(ConfigError, match="endless has no token that ends a text; set its eos_token, and save it"):
        train(tuned(tmp_path, given("t5"), prepare={"tokenizer": str(tmp_path / "endless")}))


def test_too_long_a_text_for_a_table_of_places_is_known_at_once(given: Any, tmp_path: Path) -> None:
    short = shutil.copytree(given("gpt2"), tmp_path / "short")
    model = HEADED["gpt2"](hf.AutoConfig.from_pretrained(short, n_positions=16))
    model.save_pretrained(short)
    with pytest.raises(ConfigError, match=r"cannot read a text of \d+ tokens, .*; lower prepare.longest_target"):
        train(tuned(tmp_path, short))


def test_the_key_pretrained_decides_which_configuration_it_is(given: Any, tmp_path: Path) -> None:
    words = [f"data.train={tmp_path}", f"model.pretrained={given('t5')}", "inject=[{position: t5, layers: [0]}]"]
    config = load_config(None, words)
    assert isinstance(config, PretrainedTextConfig)
    assert config.inject == [InjectConfig("t5", layers=[0])]
    assert (config.training.smoothing, config.training.optimiser.learning_rate) == (0.0, 1e-4)
    assert run_of(config).name == "pretrained-text"
    with pytest.raises(ConfigError, match=r"there is no key named 'model\.width'"):
        load_config(None, [*words, "model.width=8"])
    with pytest.raises(
        ConfigError, match=r"inject\[0\]\.start.* takes one of 'zero', 'own', 'checkpoint'; given is 'never'"
    ):
        load_config(None, [*words[:2], "inject=[{position: t5, start: never}]"])


def test_a_run_of_predictions_writes_no_texts(tmp_path: Path) -> None:
    from tests.tasks.prediction.tiny import single

    run = run_of(single(tmp_path))
    run.folder.mkdir()
    run.begin(run.learn(run.read()))
    with pytest.raises(StoreError, match="holds a run of prediction, which writes no texts; use it"):
        text_run(run.folder)


def test_damaged_files_are_named(given: Any, tmp_path: Path) -> None:
    config = tuned(tmp_path, given("t5"), training={"steps": 1})
    train(config)
    for name in ("pretrained.json", "subwords.json"):
        file = tmp_path / "run" / name
        content = file.read_bytes()
        file.write_bytes(content.replace(b"a", b"e", 1))
        with pytest.raises(StoreError, match=rf"{name}.*; restore it, or train afresh"):
            structpe.load(config.out)
        file.write_bytes(content)
    structpe.load(config.out)
