"""Models whose authors' code was run later: their numbers, layer by layer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from structpe.attention import attend
from structpe.encodings import Eigenpairs, RandomWalk
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site, build
from structpe.positions.batch import encode
from structpe.positions.grit import PPGT, _Prepared
from structpe.structure import Structure, path
from structpe.terms import Lookup, Pairs, SparsePairs, Terms
from structpe.transforms import grid, with_class_token
from tests.golden import Golden, golden
from tests.positions.literal import heads

DIMS = Dims(8, 2, 1)


def filled(model: PositionModel, numbers: dict[str, Tensor]) -> Any:
    """The model in float64, with these of its numbers."""
    made = model.double().eval()
    with torch.no_grad():
        for name, value in numbers.items():
            made.state_dict()[name].copy_(value)
    return made


@pytest.mark.parametrize(("kernel", "names"), [("log", ("height", "speed")), ("power", ("slope", "power"))])
def test_kerple(kernel: str, names: tuple[str, str]) -> None:
    given = golden("kerple")
    values = [given[f"w.{kernel}.{letter}"] for letter in ("pa" if kernel == "log" else "ap")]
    numbers = {f"{name}.weight": value[None, None] for name, value in zip(names, values, strict=True)}
    model = filled(build(f"kerple-{kernel}", Dims(8, 4, 1)), numbers)
    (bias,) = model.terms(model.prepare(encode([path(["w"] * 12)], model.encodings)), Site(0)).bias
    mine, theirs = bias.dense()[0].movedim(2, 0), given[f"out.{kernel}"]
    torch.testing.assert_close(mine.tril(), theirs.tril(), rtol=0, atol=1e-9)


def linears(given: Golden, names: dict[str, str]) -> dict[str, Tensor]:
    """Weights and biases of linear layers, by our name and theirs."""
    return {
        f"{ours}.{part}": given[f"w.{theirs}.{part}"] for ours, theirs in names.items() for part in ("weight", "bias")
    }


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_head_of_graphgps_for_laplacian_positions(layers: int) -> None:
    given, encoding = golden("gps_encoders"), Eigenpairs(5)
    theirs = ["linear_A", *(f"pe_encoder.{2 * i + 1}" for i in range(layers - 1))]
    numbers = linears(given, {f"of_each.{i}.0": f"DeepSet{layers}.{name}" for i, name in enumerate(theirs)})
    model = filled(MODELS["lap-pe"](DIMS, encoding=encoding, width=4, layers=layers), numbers)
    vectors, values = given["in.vectors"], given["in.values"].expand(7, -1)
    pairs = torch.stack([vectors.nan_to_num(0), values.nan_to_num(-1), values.isnan() * -1.0], dim=-1)
    torch.testing.assert_close(model.prepare(Positions({encoding: pairs[None]}))[0], given[f"out.DeepSet{layers}"])


@pytest.mark.parametrize(("kind", "layers"), [("linear0", 0), ("mlp1", 1), ("mlp3", 3)])
def test_the_head_of_graphgps_for_walks(kind: str, layers: int) -> None:
    given, encoding = golden("gps_encoders"), RandomWalk(6)
    names = {f"embed.{i}.0": f"kernel_{kind}.pe_encoder.{2 * i}" for i in range(layers)}
    numbers = linears(given, names or {"embed": f"kernel_{kind}.pe_encoder"})
    norm = {"weight": "weight", "bias": "bias", "mean": "running_mean", "variance": "running_var"}
    numbers |= {f"norm.{ours}": given[f"w.kernel_{kind}.raw_norm.{theirs}"] for ours, theirs in norm.items()}
    model = filled(MODELS["rwse"](DIMS, encoding=encoding, width=4, layers=layers), numbers)
    mine = model.prepare(Positions({encoding: given["in.stats"][None]}))[0]
    torch.testing.assert_close(mine, given[f"out.kernel_{kind}"])


def test_signnet() -> None:
    given, encoding = golden("signnet_dgl"), Eigenpairs(4)
    inner = {f"phi.networks.{i}.{2 * j}": f"net.enc.layers.{i}.apply_func.lins.{j}" for i in range(2) for j in range(2)}
    numbers = linears(given, inner | {f"rho.{2 * j}": f"net.rho.lins.{j}" for j in range(2)})
    numbers["phi.eps"] = torch.cat([given[f"w.net.enc.layers.{i}.eps"] for i in range(2)])
    model = filled(MODELS["signnet"](DIMS, encoding=encoding, channels=3, hidden=6, layers=2), numbers)
    graph = Structure(("x",) * 7, given.cfg["edges"], directed=False)
    vectors = given["in.v"]
    pairs = torch.stack([vectors, torch.ones_like(vectors), torch.arange(4.0).expand(7, -1)], dim=-1)[None]
    positions = encode([graph], model.encodings).to("cpu", torch.float64).replaced({encoding: pairs})
    torch.testing.assert_close(model.prepare(positions)[0], given["out.rho"])


@pytest.mark.parametrize("kernel", ["dense", "edges", "masked"])
def test_exphormer(kernel: str) -> None:
    """They add 1e-6 to the sum of the weights."""
    given = golden("exphormer_attention")
    made = build("exphormer", DIMS)
    others = given["w.types"].new_zeros(made.encodings[0].size - 3, 8)  # of types that this graph has not
    numbers = {"types": torch.cat([given["w.types"], others]), "weigh.0.weight": given["w.att.E.weight"]}
    model = filled(made, numbers)
    source, target = given["in.pairs"]
    listed = SparsePairs(torch.arange(3), given["in.types"], Pairs(torch.zeros_like(source), target, source))
    terms = model.terms(model.prepare(Positions({model.encodings[0]: listed})), Site(0))
    q, k, v = (heads(given["in.x"][None], given[f"w.att.{n}.weight"], None, 2) for n in "QKV")
    out = attend(q, k, v, terms, kernel).transpose(1, 2).flatten(2)[0]
    torch.testing.assert_close(out, given["out.h"], rtol=0, atol=1e-5)


def test_ppgt() -> None:
    given, start = golden("ppgt_attention"), 0
    names = {"queries.0": "att.Q", "outs.0": "att.O"}
    numbers = linears(given, names)
    for part in ("weight", "bias"):
        of_keys, of_values = given[f"w.att.KV.{part}"].chunk(2)
        biases, factors = given[f"w.att.P.{part}"].chunk(2)
        numbers |= {f"keys.0.{part}": of_keys, f"values.0.{part}": of_values}
        numbers |= {f"biases.0.{part}": biases, f"factors.0.{part}": factors}
    model: PPGT = filled(build("ppgt", DIMS), numbers)
    for number, size in enumerate(given.cfg["sizes"]):
        query, key = given[f"in.index{number}"]
        index = torch.zeros(1, size, size, dtype=torch.long)
        index[0, key, query] = torch.arange(size * size)
        pairs = Lookup(given[f"in.e{number}"], torch.arange(size * size)[None], index)
        x = given[f"in.x{number}"][None]
        out, _ = model.attend(x, _Prepared(pairs, torch.zeros_like(x)), Site(0), Terms())
        torch.testing.assert_close(out[0], given["out.h"][start : start + size])
        start += size


def test_the_sinusoids_of_the_code_transformer() -> None:
    """Theirs are float32."""
    given = golden("code_transformer_attention")
    model: Any = build("code-transformer", DIMS).double()
    bins = given["in.bins"].clone()
    bins[bins == given.cfg["far"]] = 1 << 20  # what encodings give without a path
    for number in range(2):
        mine = model._waves(bins[number].long())
        torch.testing.assert_close(mine, given["out.waves"][number], rtol=0, atol=1e-6)


def test_vivit_of_hugging_face() -> None:
    given = golden("hf_images")
    model = filled(build({"name": "vivit", "shape": [2, 3, 4]}, DIMS), {"table": given["w.vivit.table"][0]})
    positions = encode([with_class_token(grid([2, 3, 4]))], model.encodings)
    mine = model.inputs(given["in.vivit.plain"], model.prepare(positions))
    torch.testing.assert_close(mine, given["out.vivit"])


@pytest.mark.parametrize("kernel", ["dense", "sdpa", "tables", "tiled"])
def test_beit_of_hugging_face(kernel: str) -> None:
    """Their softmax is of float32."""
    given = golden("hf_images")
    model = filled(build({"name": "beit", "window": [3, 3]}, DIMS), {"table.weight": given["w.beit.table"][None]})
    positions = encode([with_class_token(grid([3, 3]))], model.encodings)
    terms = model.terms(model.prepare(positions), Site(0))
    x, w = given["in.beit.x"], given.weights("beit.")
    q, k, v = (heads(x, w[f"{n}_proj.weight"], w.get(f"{n}_proj.bias"), 2) for n in "qkv")
    mixed = attend(q, k, v, terms, kernel).transpose(1, 2).flatten(2)
    out = functional.linear(mixed, w["o_proj.weight"], w["o_proj.bias"])
    torch.testing.assert_close(out, given["out.beit"], rtol=0, atol=1e-6)
