"""Load weights that authors have published into position models.

::

    state = torch.load("pytorch_model.bin", weights_only=True)
    load_authors(structpe.build("deberta", dims), state, prefix="deberta.")

:data:`AUTHORS` lists the names of weights for each position model. Only the weights of positions are used. A missing
weight, an additional one, such as that of another layer, or a different shape is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor

from structpe.errors import PositionError, listed
from structpe.positions import PositionModel
from structpe.positions.build import check_model

__all__ = ["AUTHORS", "Authors", "TrackedState", "load_authors"]


Edges: TypeAlias = Mapping[str, Sequence[int]]


@dataclass
class TrackedState:
    """A ``state_dict`` that keeps track of the used names.

    Attributes:
        tensors: the tensors by name.
        code: the name of the authors' code, for errors.
    """

    tensors: Mapping[str, Tensor]
    code: str
    _taken: set[str] = field(default_factory=set)

    def take(self, *names: str) -> Tensor:
        """The tensor of the first name that exists.

        Raises:
            PositionError: no name exists.
        """
        for name in names:
            if name in self.tensors:
                self._taken.add(name)
                return self.tensors[name]
        ending = next((key for key in self.tensors if key.endswith(names[0])), None)
        hint = "" if ending is None else f"; it has {ending!r}, so give prefix={ending.removesuffix(names[0])!r}"
        raise PositionError(f"the state has no {names[0]!r}, as {self.code} names it{hint}")

    def has(self, name: str) -> bool:
        """Whether a name exists."""
        return name in self.tensors

    def linear(self, ours: str, theirs: str, bias: bool = True) -> dict[str, Tensor]:
        """Weight and bias of a linear map, or of a norm."""
        kinds = ("weight", "bias") if bias else ("weight",)
        return {f"{ours}.{kind}": self.take(f"{theirs}.{kind}") for kind in kinds}

    def unused(self) -> list[str]:
        """The names that have not been used."""
        return [name for name in self.tensors if name not in self._taken]


@dataclass(frozen=True)
class Authors:
    """The published code of some position models.

    Attributes:
        models: names of the position models.
        code: name of the code, for errors.
        about: matches the names of weights of positions.
        numbers: makes the ``state_dict`` of the position model.
        table: their names and ours, for the documentation.
    """

    models: tuple[str, ...]
    code: str
    about: re.Pattern[str]
    numbers: Callable[[Any, TrackedState, Edges], dict[str, Tensor]]
    table: Mapping[str, str]


def _t5(model: Any, state: TrackedState, _: Edges) -> dict[str, Tensor]:
    stack = "encoder" if model.rows.rule.bidirectional else "decoder"
    theirs = state.take(f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight")
    own = model.table.weight
    more = theirs[-1:].expand(own.shape[1] - model.rows.offsets, -1)
    return {"table.weight": torch.cat([theirs, more]).expand(len(own), -1, -1)}


def _deberta(model: Any, state: TrackedState, _: Edges) -> dict[str, Tensor]:
    found = {"table": _and_own(state.take("encoder.rel_embeddings.weight"), model.table)}
    for layer in range(model.dims.layers):
        own = f"encoder.layer.{layer}.attention.self."
        for ours, theirs in (("keys", ("pos_proj", "pos_key_proj")), ("queries", ("pos_q_proj", "pos_query_proj"))):
            if f"{ours}.{layer}.weight" in model.state_dict():
                weight = state.take(*(f"{own}{name}.weight" for name in theirs))
                biases = [f"{own}{name}.bias" for name in theirs]
                bias = state.take(*biases) if any(map(state.has, biases)) else weight.new_zeros(len(weight))
                found |= {f"{ours}.{layer}.weight": weight, f"{ours}.{layer}.bias": bias}
    return found


def _deberta_v2(model: Any, state: TrackedState, _: Edges) -> dict[str, Tensor]:
    found = {"table": _and_own(state.take("encoder.rel_embeddings.weight"), model.table)}
    if "norm.weight" in model.state_dict():
        found |= state.linear("norm", "encoder.LayerNorm")
    for layer in range(model.dims.layers):
        own = f"encoder.layer.{layer}.attention"
        for ours in ("query", "key", "value"):
            found |= state.linear(f"{ours}.{layer}", f"{own}.self.{ours}_proj")
        found |= state.linear(f"out.{layer}", f"{own}.output.dense")
    return found


def _xl(model: Any, state: TrackedState, _: Edges) -> dict[str, Tensor]:
    projected = {
        f"project.{layer}.weight": state.take(f"layers.{layer}.dec_attn.r_net.weight")
        for layer in range(model.dims.layers)
    }
    return {"content": state.take("r_w_bias"), "position": state.take("r_r_bias"), **projected}


def _graphormer(model: Any, state: TrackedState, edges: Edges) -> dict[str, Tensor]:
    of_pairs, of_nodes = "graph_attn_bias.", "graph_node_feature."
    far, spatial = model.spatial.distances, state.take(f"{of_pairs}spatial_pos_encoder.weight")
    if len(spatial) < far + 2:
        raise PositionError(
            f"spatial_pos_encoder has {len(spatial)} rows; build the model with distances={len(spatial) - 2}"
        )
    within = spatial[1:2].expand(model.spatial.rows.size - far - 1, -1)
    found = {
        "spatial.table": torch.cat([spatial[1 : far + 1], spatial[far + 1 : far + 2], within]),
        "spatial.token": state.take(f"{of_pairs}graph_token_virtual_distance.weight")[0],
        "centrality.tables.0": state.take(f"{of_nodes}in_degree_encoder.weight")[1:],
        "centrality.tables.1": state.take(f"{of_nodes}out_degree_encoder.weight")[1:],
        "edges.table": _of_labels(state.take(f"{of_pairs}edge_encoder.weight"), model.encodings[1].labels, edges),
    }
    if "steps" in model.state_dict():
        heads = model.dims.heads
        steps = state.take(f"{of_pairs}edge_dis_encoder.weight").reshape(-1, heads, heads)
        found["steps"] = steps[: len(model.steps)]
    return found


def _grit(model: Any, state: TrackedState, edges: Edges) -> dict[str, Tensor]:
    found = {f"{ours}.weight": state.take(f"rrwp_{name}_encoder.fc.weight") for ours, name in _GRIT_WALKS.items()}
    if model.edges is not None:
        table = state.take("encoder.edge_encoder.encoder.weight")
        found["edges.table"] = _of_labels(table, model.encodings[2].labels, edges)
    for layer in range(model.dims.layers):
        found |= _grit_layer(model, state, layer)
    return found


_GRIT_WALKS = {"absolute": "abs", "relative": "rel"}


def _grit_layer(model: Any, state: TrackedState, layer: int) -> dict[str, Tensor]:
    ours, theirs, d, h = f"attentions.{layer}", f"layers.{layer}", model.dims.width, model.dims.heads
    inner = f"{theirs}.attention"
    found = state.linear(f"{ours}.query", f"{inner}.Q") | state.linear(f"{ours}.out", f"{theirs}.O_h")
    found |= state.linear(f"{ours}.key", f"{inner}.K", False) | state.linear(f"{ours}.value", f"{inner}.V", False)
    for kind in ("weight", "bias"):
        both = state.take(f"{inner}.E.{kind}")
        both = both.view(h, 2, d // h, *both.shape[1:])
        found |= {f"{ours}.{name}.{kind}": both[:, place].flatten(0, 1) for place, name in enumerate(("weigh", "add"))}
    found[f"{ours}.score"] = state.take(f"{inner}.Aw")[..., 0].T
    found[f"{ours}.of_pairs"] = state.take(f"{inner}.VeRow").transpose(0, 1)
    found[f"{ours}.scaler"] = state.take(f"{theirs}.deg_coef")[0].T
    if (norm := model.attentions[layer].norm) is None:  # the last layer does not change states of pairs
        return found
    kind = "batch" if dict(norm.named_buffers()) else "layer"
    found |= state.linear(f"{ours}.pairs", f"{theirs}.O_e") | state.linear(f"{ours}.norm", f"{theirs}.{kind}_norm1_e")
    if kind == "batch":
        found[f"{ours}.norm.mean"] = state.take(f"{theirs}.batch_norm1_e.running_mean")
        found[f"{ours}.norm.variance"] = state.take(f"{theirs}.batch_norm1_e.running_var")
    return found


def _and_own(theirs: Tensor, own: Tensor) -> Tensor:
    """Their rows, and those rows of our table that they lack, for values that are not offsets."""
    return torch.cat([theirs, own.detach()[len(theirs) :].to(theirs)])


def _of_labels(theirs: Tensor, labels: Sequence[str], edges: Edges) -> Tensor:
    """A row of zeros for unknown labels, then the rows of each label in both directions.

    Raises:
        PositionError: the rows of a label are not given, or do not exist.
    """
    if lacking := [label for label in labels if label not in edges]:
        raise PositionError(
            f"which rows of the authors' table of edges are the label {lacking[0]!r} is not known; give edges={{label: "
            f"rows}}"
        )
    rows = [theirs.new_zeros(theirs.shape[1])]
    for label in labels:
        if not edges[label] or not all(0 <= row < len(theirs) for row in edges[label]):
            raise PositionError(
                f"rows {list(edges[label])} of the label {label!r}: the table of edges has {len(theirs)}"
            )
        rows += [theirs[list(edges[label])].mean(0)] * 2
    return torch.stack(rows)


AUTHORS = (
    Authors(
        ("t5", "t5-unshared", "glm-local", "glm-global"),
        "the encoder of T5",
        re.compile(r"^encoder.*relative_attention_bias"),
        _t5,
        {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": "table.weight"},
    ),
    Authors(
        ("t5-causal",),
        "the decoder of T5",
        re.compile(r"^decoder.*relative_attention_bias"),
        _t5,
        {"decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": "table.weight"},
    ),
    Authors(
        ("deberta",),
        "DeBERTa",
        re.compile(r"rel_embeddings|pos_(q_|key_|query_)?proj"),
        _deberta,
        {
            "encoder.rel_embeddings.weight": "table",
            "encoder.layer.L.attention.self.pos_proj, or pos_key_proj": "keys.L; without a bias it is 0",
            "encoder.layer.L.attention.self.pos_q_proj, or pos_query_proj": "queries.L",
        },
    ),
    Authors(
        ("deberta-v2",),
        "DeBERTa, versions 2 and 3,",
        re.compile(r"rel_embeddings|^encoder\.LayerNorm|attention\.(self|output\.dense)\."),
        _deberta_v2,
        {
            "encoder.rel_embeddings.weight": "table",
            "encoder.LayerNorm": "norm",
            "encoder.layer.L.attention.self.query_proj, key_proj, value_proj": "query.L, key.L, value.L",
            "encoder.layer.L.attention.output.dense": "out.L",
        },
    ),
    Authors(
        ("transformer-xl",),
        "Transformer-XL",
        re.compile(r"r_net|r_w_bias|r_r_bias"),
        _xl,
        {
            "layers.L.dec_attn.r_net.weight": "project.L.weight",
            "r_w_bias, r_r_bias": "content, position; of all layers (untie_r=False)",
        },
    ),
    Authors(
        ("graphormer", "graphormer-simple"),
        "Graphormer",
        re.compile(r"graph_attn_bias|degree_encoder"),
        _graphormer,
        {
            "graph_attn_bias.spatial_pos_encoder.weight": "spatial.table: their row r + 1 for distance r",
            "graph_attn_bias.graph_token_virtual_distance.weight": "spatial.token",
            "graph_attn_bias.edge_encoder.weight": "edges.table, by the rows that edges= gives",
            "graph_attn_bias.edge_dis_encoder.weight": "steps, the first of as many as paths are long",
            "graph_node_feature.in_degree_encoder, out_degree_encoder": "centrality.tables, without row 0, for padding",
        },
    ),
    Authors(
        ("grit",),
        "GRIT",
        re.compile(r"rrwp_\w+_encoder\.fc|\.attention\.|\.O_h|deg_coef"),
        _grit,
        {
            "rrwp_abs_encoder.fc.weight, rrwp_rel_encoder.fc.weight": "absolute.weight, relative.weight",
            "encoder.edge_encoder.encoder.weight": "edges.table, by the rows that edges= gives",
            "layers.L.attention.Q, K, V": "attentions.L.query, key, value",
            "layers.L.attention.E": "attentions.L.weigh and add, of each head one after the other",
            "layers.L.attention.Aw, VeRow": "attentions.L.score, of_pairs",
            "layers.L.O_h, O_e, deg_coef": "attentions.L.out, pairs, scaler; O_e of the last layer is not used",
            "layers.L.batch_norm1_e, layer_norm1_e": "attentions.L.norm",
        },
    ),
)
"""Names of weights in the code of the authors or of Hugging Face, and ours; L is the number of a layer."""


def load_authors(
    position: PositionModel,
    state: Mapping[str, Tensor],
    edges: Mapping[str, Sequence[int]] | None = None,
    prefix: str = "",
) -> PositionModel:
    """Load weights of the code of its authors, or of Hugging Face, into a position model, and return it.

    Rows of tables that the authors do not have, such as those of units within one node, are filled as described in
    :data:`AUTHORS`.

    Args:
        position: a position model in ``AUTHORS``.
        state: a ``state_dict``, which may be that of a complete model.
        edges: for ``graphormer`` and ``grit`` with labels of edges: for each label, the rows of the authors' table of
            edges, one for each feature of an edge, whose mean is the row of the label.
        prefix: prefix of the names in the state.

    Raises:
        PositionError: the position model is not in ``AUTHORS``, or the state lacks its weights.
    """
    check_model(position, "load_authors")
    authors = next((each for each in AUTHORS if position.name in each.models), None)
    if authors is None:
        known = listed([name for each in AUTHORS for name in each.models])
        raise PositionError(
            f"no authors' names are known for position model {position.name!r}; known are those of {known}"
        )
    given = TrackedState(_stripped(state, prefix), authors.code)
    found = authors.numbers(position, given, {} if edges is None else edges)
    _check_used(authors, position, given)
    _check_shapes(position, found, authors)
    with torch.no_grad():
        for name, own in position.state_dict().items():
            own.copy_(found[name])
    return position


def _stripped(state: Mapping[str, Any], prefix: str) -> dict[str, Tensor]:
    """The tensors with a prefix, by their names without it.

    Raises:
        PositionError: no name has the prefix.
    """
    found = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    if not found:
        raise PositionError(f"no name of the state begins with {prefix!r}; its first are {listed(list(state)[:4])}")
    return found


def _check_used(authors: Authors, position: PositionModel, given: TrackedState) -> None:
    if left := [name for name in given.unused() if authors.about.search(name)]:
        raise PositionError(
            f"position model {position.name!r} has no place for {listed(left)} of {authors.code}; build it with as "
            f"many layers and the same options as the model of the state"
        )


def _check_shapes(position: PositionModel, found: Mapping[str, Tensor], authors: Authors) -> None:
    for name, own in position.state_dict().items():
        if name not in found:
            raise PositionError(f"{authors.code} has no numbers for {name!r} of position model {position.name!r}")
        if found[name].shape != own.shape:
            raise PositionError(
                f"{name!r} of position model {position.name!r} has shape {tuple(own.shape)}, and {authors.code} gives "
                f"{tuple(found[name].shape)}; build the position model with the sizes of the state"
            )
