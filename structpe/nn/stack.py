"""A stack of layers with a position model, and vectors of nodes and edges from their features."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from structpe.attention import Layout
from structpe.data.batch import Batch, Grouping
from structpe.data.features import Categories, Features, Numbers
from structpe.dropout import Dropout
from structpe.errors import ConfigError
from structpe.nn.layer import Context, Layer, StackConfig
from structpe.plain.options import refuse_inert
from structpe.positions import PositionModel, Positions, Site
from structpe.positions.build import Config, as_model

__all__ = [
    "FeatureEmbedding",
    "Stack",
]


class FeatureEmbedding(nn.Module):
    """A vector of width d for each node or edge.

    Categories: the sum of one embedding per column. Numbers: a linear map. No features: one learned vector.

    Args:
        features: kind of the features.
        width: d.
    """

    def __init__(self, features: Features, width: int) -> None:
        super().__init__()
        sizes = features.sizes if isinstance(features, Categories) else () if isinstance(features, Numbers) else (1,)
        self.linear = nn.Linear(features.columns, width) if isinstance(features, Numbers) else None
        if self.linear is not None:
            nn.init.xavier_uniform_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)
        # All columns share one table: one lookup then sums their rows.
        self.table = nn.EmbeddingBag(sum(sizes), width, mode="sum") if sizes else None
        if self.table is not None:
            nn.init.xavier_uniform_(self.table.weight)
        first = torch.tensor([sum(sizes[:i]) for i in range(len(sizes))])
        self.register_buffer("first", first, persistent=False)

    first: Tensor

    def forward(self, x: Tensor | None, count: int) -> Float[Tensor, "N d"]:
        """(N, k) features, or None, to (N, d) vectors; ``count`` is N."""
        if self.linear is not None:
            assert x is not None
            mapped: Tensor = self.linear(x.to(self.linear.weight.dtype))
            return mapped
        assert self.table is not None
        which, table = self.first.expand(count, 1) if x is None else x + self.first, self.table.weight
        exact = table.device.type == "cpu" and table.dtype in (torch.float32, torch.float64)
        if torch.compiler.is_compiling() or not exact:
            embedded: Tensor = self.table(which)
        else:
            embedded = _Summed.apply(table, which)  # type: ignore[no-untyped-call]
        return embedded


class _Summed(torch.autograd.Function):
    """sum_c table[which_ic], as ``EmbeddingBag``, whose gradient sorts all ids: a quarter of its time on a CPU."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, which: Tensor) -> Tensor:
        ctx.save_for_backward(which)
        ctx.rows = len(table)
        one = which.shape[1] == 1
        return table.index_select(0, which[:, 0]) if one else functional.embedding_bag(which, table, mode="sum")

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (which,) = ctx.saved_tensors
        of_table = grad.new_zeros(ctx.rows, grad.shape[1])
        for column in which.unbind(1):
            of_table.index_add_(0, column, grad)
        return of_table, None


class Stack(nn.Module):
    """Units (N, d) to hidden vectors (N, d).

    Args:
        config: sizes and options.
        position: built for ``config.dims``, a model or a sum of them; or plain data for :func:`structpe.build`.
        edges: features of edges, for convolutions that read them.
        directed: whether to learn a vector for the direction of edges, if features of edges do not contain it.
        reads: whether layers have cross-attention to an encoder, as in a decoder.

    Raises:
        ConfigError: the position model has no effect without attention, or an option of attention has no effect,
            since the position model has its own.
    """

    def __init__(
        self,
        config: StackConfig,
        position: PositionModel | Config,
        edges: Features = None,
        directed: bool = False,
        reads: bool = False,
    ) -> None:
        super().__init__()
        position = as_model(position, config.dims)
        if position.sites and not config.attention and not position.sites & {"inputs", "layer"}:
            wrong = "the position model acts on attention only, and this model has none"
            raise ConfigError(f"{wrong}; choose one that acts on the input, or give the model attention")
        if own := config.of_own_attention(position):
            refuse_inert(config, also=own)
        self.config, self.position = config, position
        self.edges = FeatureEmbedding(edges, config.width) if config.reads_edges else None
        self.reverse = nn.Parameter(torch.zeros(config.width)) if directed and config.reads_edges else None
        self.dropout = Dropout(config.input_dropout)
        self.layers = nn.ModuleList(Layer(config, position, reads, number) for number in range(config.layers))
        self.virtual = VirtualNodes(config) if config.virtual_node else None
        self.norm = nn.LayerNorm(config.width) if config.attention and config.norm_first else nn.Identity()

    @property
    def grouping(self) -> Grouping:
        """The grouping of its batches."""
        if self.config.attention and self.position.own_attention:
            return "together"
        if not self.config.attention or not {"terms", "sources"} & self.position.sites:
            return "separate"
        normalises = any("BatchNorm" in type(m).__name__ for m in self.position.modules())
        return "together" if normalises else "buckets"

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "N d"]:
        """Hidden vectors of the units of a batch created with ``grouping``."""
        return self.run(x, Context.of(self.position, batch), self._edges(batch))[0]

    def padded(
        self, x: Float[Tensor, "b n d"], positions: Positions, present: Bool[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b n d"]:
        """Hidden vectors of padded rows, for code without a :class:`Batch`; without message passing.

        Args:
            x: embedded units.
            positions: the values of the encodings, from :func:`structpe.encode`; those of one structure serve all rows.
            present: which places hold a unit; None if all do. The output at other places is arbitrary.
        """
        layout = Layout.full(*x.shape[:2]) if present is None else Layout.masked(present)
        if positions.single and len(x) > 1:
            positions = positions.repeated(len(x), self.position.own_attention)
        hidden = self.run(layout.flat([x]), Context(self.position, layout, [positions.of(present)]))[0]
        return layout.padded(hidden)[0]

    def run(self, x: Tensor, context: Context, edges: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
        """Hidden vectors after the last layer, and the input (N, d) of each layer, without gradient."""
        x = self.dropout(context.inputs(x))
        virtual = None if self.virtual is None else self.virtual.start(context)
        given = []
        for number, layer in enumerate(self.layers):
            site = Site(number, self.training)
            x = context.before(x, site)
            if self.virtual is not None and virtual is not None:
                x, virtual = self.virtual(x, virtual, context, number)
            given.append(x.detach())
            x, edges = layer(x, edges, context, site)
        out: Tensor = self.norm(x)
        return out, given

    def _edges(self, batch: Batch) -> Tensor | None:
        if self.edges is None:
            return None
        edges: Tensor = self.edges(batch.edge_x, len(batch.adjacency.source))
        if batch.reverse is None or self.reverse is None:
            return edges
        return edges + batch.reverse[:, None].to(edges.dtype) * self.reverse


class VirtualNodes(nn.Module):
    """Before each layer: x_i <- x_i + v, v' = v + MLP(v + sum_i x_i), of each graph.

    Gilmer et al. 2017, section 5.2; in the order of OGB's code (Hu et al. 2020). Its MLP has two linear maps with batch
    normalisation; here it has one with layer normalisation, which also works for a batch of one graph.

    Args:
        config: sizes and options.
    """

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        width = config.width
        self.first = nn.Parameter(torch.zeros(width))
        self.updates = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU(), Dropout(config.dropout))
            for _ in range(config.layers - 1)
        )

    def start(self, context: Context) -> Float[Tensor, "g d"]:
        """The virtual nodes before the first layer."""
        assert context.batch is not None
        return self.first.expand(len(context.batch.sizes), -1)

    def forward(self, x: Tensor, virtual: Tensor, context: Context, number: int) -> tuple[Tensor, Tensor]:
        """The nodes with the virtual nodes added, and the virtual nodes for the next layer."""
        assert context.batch is not None
        graph = context.batch.graph
        x = x + virtual.index_select(0, graph)
        if number == len(self.updates):
            return x, virtual
        return x, virtual + self.updates[number](virtual.index_add(0, graph, x))
