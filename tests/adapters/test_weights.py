"""Authors' weights by their names: outputs of Hugging Face's classes, golden numbers, formulas on authors' shapes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from structpe.adapters.weights import AUTHORS, load_authors
from structpe.attention import attend
from structpe.encodings import LabelPath
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, Site, build
from structpe.positions.batch import encode
from structpe.positions.buckets import T5
from structpe.structure import Structure, path
from structpe.terms import Terms
from tests.golden import golden
from tests.positions.test_graphormer import KINDS, filled

DIMS = Dims(16, 4, 2)


def drawn(model: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def hugging_face(kind: str, **options: Any) -> Any:
    """A small random model of transformers."""
    import transformers

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}
    if kind == "T5":
        sizes = {"d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4}
    config = getattr(transformers, f"{kind}Config")(vocab_size=20, **sizes, **options)
    return drawn(getattr(transformers, f"{kind}Model")(config))


@pytest.mark.parametrize(("name", "stack"), [("t5", "encoder"), ("t5-causal", "decoder")])
def test_t5(name: str, stack: str) -> None:
    model = hugging_face("T5")
    position = load_authors(build(name, DIMS), model.state_dict())
    terms = position.terms(position.prepare(encode([path("a" * 200)], position.encodings)), Site(1))
    theirs = getattr(model, stack).block[0].layer[0].SelfAttention.compute_bias(200, 200)
    seen = torch.ones(200, 200, dtype=torch.bool) if stack == "encoder" else torch.ones(200, 200).tril().bool()
    assert torch.equal(terms.bias[0].dense()[0].movedim(2, 0)[:, seen], theirs[0][:, seen])


def test_rows_that_t5_lacks_are_that_of_the_farthest_keys() -> None:
    position = build({"name": "t5", "encoding": "distance"}, DIMS)
    assert isinstance(load_authors(position, hugging_face("T5").state_dict()), T5)
    table = position.get_parameter("table.weight")
    assert table.shape[1] > 32
    assert torch.equal(table[0, 32:], table[0, 31:32].expand(table.shape[1] - 32, -1))


@pytest.mark.parametrize("kinds", [("c2p", "p2c"), ("c2p",), ("p2c",)])
def test_deberta(kinds: tuple[str, ...]) -> None:
    options = {"relative_attention": True, "max_relative_positions": 6, "pos_att_type": list(kinds)}
    model = hugging_face("Deberta", **options)
    position = build({"name": "deberta", "max_distance": 6, "interactions": list(kinds)}, DIMS)
    load_authors(position, {f"deberta.{key}": value for key, value in model.state_dict().items()}, prefix="deberta.")
    x, attention = torch.randn(2, 9, 16), model.encoder.layer[1].attention.self
    offsets = torch.arange(9)[None, :, None] - torch.arange(9)
    rows = model.encoder.rel_embeddings.weight
    expected, _ = attention(x, torch.ones(2, 1, 9, 9), relative_pos=offsets, rel_embeddings=rows)
    q, k, v = attention.in_proj(x).unflatten(-1, (4, 12)).chunk(3, -1)
    q, v = (each + own.view(4, 4) for each, own in ((q, attention.q_bias), (v, attention.v_bias)))
    terms = position.terms(position.prepare(encode([path("a" * 9)], position.encodings)), Site(1))
    mine = attend(*(each.transpose(1, 2) for each in (q, k, v)), terms, "dense").transpose(1, 2).flatten(2)
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("norm", ["layer_norm", "none"])
def test_deberta_v2(norm: str) -> None:
    model = hugging_face(
        "DebertaV2",
        relative_attention=True,
        position_buckets=4,
        max_relative_positions=12,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd=norm,
    )
    options = {"num_buckets": 4, "max_distance": 12, "normalised": norm == "layer_norm"}
    position = load_authors(build({"name": "deberta-v2", **options}, DIMS), model.state_dict())
    x, layer = torch.randn(2, 9, 16), model.encoder.layer[1].attention
    rows = model.encoder.get_rel_embedding()
    context, _ = layer.self(x, torch.ones(2, 1, 9, 9), rel_embeddings=rows)
    prepared = position.prepare(encode([path("a" * 9)], position.encodings))
    mine, _ = position.attend(x, prepared, Site(1), Terms())  # type: ignore[attr-defined]
    torch.testing.assert_close(mine, layer.output.dense(context), rtol=0, atol=1e-5)


def test_transformer_xl() -> None:
    """The golden file's numbers; test_transformer_xl.py compares what they give."""
    given = golden("transformer_xl")
    state = {
        "transformer.layers.0.dec_attn.r_net.weight": given["w.r_net.weight"],
        "transformer.layers.0.dec_attn.qkv_net.weight": given["w.qkv_net.weight"],
        "transformer.r_w_bias": given["in.r_w_bias"],
        "transformer.r_r_bias": given["in.r_r_bias"],
    }
    position = load_authors(build("transformer-xl", Dims(8, 2, 1)).double(), state, prefix="transformer.")
    expected = {"content": "in.r_w_bias", "position": "in.r_r_bias", "project.0.weight": "w.r_net.weight"}
    assert all(torch.equal(position.state_dict()[ours], given[theirs]) for ours, theirs in expected.items())


@pytest.mark.parametrize("name", KINDS)
def test_graphormer(name: str) -> None:
    """As test_graphormer.py fills it by hand, where the authors' outputs are compared."""
    given = golden(KINDS[name])
    expected, _ = filled(name, given)
    state: dict[str, Tensor] = {}
    for inner in ("spatial_pos_encoder", "edge_encoder"):
        rows, values = (given[f"w.{inner}.weight.{part}"] for part in ("rows", "values"))
        dense = torch.zeros(512 if inner == "spatial_pos_encoder" else 1537, values.shape[1], dtype=values.dtype)
        dense[rows] = values
        state[f"graph_attn_bias.{inner}.weight"] = dense
    token = "graph_token_virtual_distance.weight"
    state[f"graph_attn_bias.{token}"] = given[f"w.{token}"]
    for direction in ("in", "out"):
        inner = f"{direction}_degree_encoder.weight"
        state[f"graph_node_feature.{inner}"] = given[f"w.node.{inner}"]
    if name == "graphormer":
        state["graph_attn_bias.edge_dis_encoder.weight"] = given["w.edge_dis_encoder.weight"]
    paths, first = expected.encodings[1], 3 if name == "graphormer" else 2
    assert isinstance(paths, LabelPath)
    numbers = {label: [int(part) for part in label.split(",")] for label in paths.labels}
    edges = {label: [a + first, b + 512 + first] for label, (a, b) in numbers.items()}
    position = MODELS[name](expected.dims, **expected.options()).double()
    state = {f"encoder.graph_encoder.{key}": value for key, value in state.items()}
    load_authors(position, state, edges, prefix="encoder.graph_encoder.")
    mine, theirs = position.state_dict(), expected.state_dict()
    assert mine.keys() == theirs.keys()
    assert torch.equal(mine["spatial.table"][[0, 1, 2, 3, 510]], theirs["spatial.table"][[0, 1, 2, 3, 510]])
    assert torch.equal(mine["edges.table"][1::2], theirs["edges.table"][1::2])
    assert torch.equal(mine["edges.table"][2::2], theirs["edges.table"][1::2]), "a label has one row in their code"
    for key in mine.keys() - {"spatial.table", "edges.table"}:
        assert torch.equal(mine[key], theirs[key]), key


def grit_state(norm: str) -> dict[str, Tensor]:
    """Random numbers with the authors' names and shapes: width 8, two heads, five steps, two layers."""
    d, h, c = 8, 2, 4
    shapes: dict[str, tuple[int, ...]] = {f"rrwp_{kind}_encoder.fc.weight": (d, 5) for kind in ("abs", "rel")}
    shapes["encoder.edge_encoder.encoder.weight"] = (3, d)
    for i in range(2):
        own = f"layers.{i}."
        shapes |= {f"{own}attention.{name}.weight": (d, d) for name in "QKV"}
        shapes |= {f"{own}attention.Q.bias": (d,), f"{own}attention.E.weight": (2 * d, d)}
        shapes |= {f"{own}attention.E.bias": (2 * d,), f"{own}attention.Aw": (c, h, 1), f"{own}deg_coef": (1, d, 2)}
        shapes |= {f"{own}attention.VeRow": (c, h, c), f"{own}FFN_h_layer1.weight": (2 * d, d)}
        shapes |= {f"{own}{name}.weight": (d, d) for name in ("O_h", "O_e")}
        shapes |= {f"{own}{name}.bias": (d,) for name in ("O_h", "O_e")}
        shapes |= {f"{own}{norm}_norm1_e.{kind}": (d,) for kind in ("weight", "bias")}
        if norm == "batch":
            shapes |= {f"{own}batch_norm1_e.running_{kind}": (d,) for kind in ("mean", "var")}
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.rand(shape, generator=generator, dtype=torch.float64) - 0.4 for name, shape in shapes.items()
    } | {f"layers.{i}.batch_norm1_e.running_var": torch.ones(8).double() for i in range(2) if norm == "batch"}


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_grit_on_the_authors_shapes(norm: str) -> None:
    state = grit_state(norm)
    structure = Structure(("x",) * 5, [[0, 1], [1, 2], [2, 3], [3, 0]], ("a", "b", "a", "a"), directed=False)
    labels = LabelPath(("a", "b"), max_length=1, longer="symbol")
    options: dict[str, Any] = {"labels": labels, "norm": norm, "encoding": {"name": "rrwp", "steps": 5}}
    position: Any = build({"name": "grit", **options}, Dims(8, 2, 2)).double().eval()
    load_authors(position, state, {"a": [1], "b": [2]})
    x, prepared = torch.randn(1, 5, 8).double(), position.prepare(encode([structure], position.encodings))
    walks = encode([structure], position.encodings[:1])[position.encodings[0]].dense()[0].double()
    e = walks @ state["rrwp_rel_encoder.fc.weight"].T
    for (a, b), label in zip(structure.edges.tolist(), structure.relations, strict=True):
        for i, j in ((a, b), (b, a)):
            e[i, j] += state["encoder.edge_encoder.encoder.weight"]["xab".index(label)]
    assert torch.equal(
        position.inputs(x, prepared)[0], x[0] + walks.diagonal().T @ state["rrwp_abs_encoder.fc.weight"].T
    )
    w = {name.removeprefix("layers.0."): value for name, value in state.items() if name.startswith("layers.0.")}
    q = (x[0] @ w["attention.Q.weight"].T + w["attention.Q.bias"]).view(5, 2, 4)
    k, v = ((x[0] @ w[f"attention.{name}.weight"].T).view(5, 2, 4) for name in "KV")
    weigh, add = (e @ w["attention.E.weight"].T + w["attention.E.bias"]).view(5, 5, 2, 8).chunk(2, -1)
    met = (q[:, None] + k[None]) * weigh  # of query i and key j
    seen = (met.sign() * met.abs().sqrt() + add).relu()
    scores = torch.einsum("ijhd,dhc->ijh", seen, w["attention.Aw"]).clamp(-5, 5)
    weights = scores.softmax(1)
    y = torch.einsum("ijh,jhd->ihd", weights, v)
    y = y + torch.einsum("ijh,ijhd,dhc->ihc", weights, seen, w["attention.VeRow"])
    degree = torch.tensor([2.0, 2, 2, 2, 0]).double().log1p()[:, None]
    scaled = torch.stack([y.flatten(1), y.flatten(1) * degree], -1)
    out = (scaled * w["deg_coef"]).sum(-1) @ w["O_h.weight"].T + w["O_h.bias"]
    mine, after = position.attend(x, prepared, Site(0), Terms())
    torch.testing.assert_close(mine[0], out, rtol=0, atol=1e-12)
    states = e + seen.flatten(2) @ w["O_e.weight"].T + w["O_e.bias"]
    if norm == "layer":
        states = torch.nn.functional.layer_norm(states, (8,))
    else:
        states = (states - w["batch_norm1_e.running_mean"]) / (w["batch_norm1_e.running_var"] + 1e-5).sqrt()
    states = states * w[f"{norm}_norm1_e.weight"] + w[f"{norm}_norm1_e.bias"]
    torch.testing.assert_close(after.pairs, states.flatten(0, 1), rtol=0, atol=1e-12)


GRIT: dict[str, Any] = {"name": "grit", "encoding": {"name": "rrwp", "steps": 5}, "norm": "batch"}


@pytest.mark.parametrize(
    ("config", "change", "options", "message"),
    [
        ("shaw", {}, {}, "no authors' names are known for position model 'shaw'; known are those of t5"),
        (GRIT, {"layers.1.attention.Q.bias": None}, {}, r"the state has no 'layers.1.attention.Q.bias', as GRIT names"),
        (GRIT, {"layers.2.attention.Q.bias": torch.zeros(8)}, {}, r"no place for layers.2.attention.Q.bias of GRIT"),
        (GRIT, {"layers.0.attention.Q.bias": torch.zeros(9)}, {}, r"has shape \(8,\), and GRIT gives \(9,\)"),
        (GRIT, {}, {"prefix": "model."}, "no name of the state begins with 'model.'"),
        (
            {**GRIT, "labels": {"name": "label-path", "labels": ["a"], "max_length": 1, "longer": "symbol"}},
            {},
            {},
            "which rows of the authors' table of edges are the label 'a' is not known",
        ),
        (
            {**GRIT, "labels": {"name": "label-path", "labels": ["a"], "max_length": 1, "longer": "symbol"}},
            {},
            {"edges": {"a": [3]}},
            r"rows \[3\] of the label 'a': the table of edges has 3",
        ),
    ],
)
def test_what_does_not_fit(config: Any, change: dict[str, Any], options: dict[str, Any], message: str) -> None:
    position = build(config, Dims(8, 2, 2)).double()
    before = {key: value.clone() for key, value in position.state_dict().items()}
    state = {key: value for key, value in {**grit_state("batch"), **change}.items() if value is not None}
    with pytest.raises(PositionError, match=message):
        load_authors(position, state, **options)
    assert all(torch.equal(value, before[key]) for key, value in position.state_dict().items())


def test_a_missing_prefix_is_found() -> None:
    with pytest.raises(
        PositionError, match=r"it has 'deberta.encoder.rel_embeddings.weight', so give prefix='deberta.'"
    ):
        load_authors(build("deberta", DIMS), {"deberta.encoder.rel_embeddings.weight": torch.zeros(2, 2)})


def test_every_named_model_is_in_the_catalogue_once() -> None:
    names = [name for each in AUTHORS for name in each.models]
    assert len(set(names)) == len(names)
    assert set(names) <= set(MODELS)
    assert all(each.table for each in AUTHORS)
