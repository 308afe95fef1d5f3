"""Message passing along edges: convolutions found by their names, and any other of PyTorch Geometric by a path.

They are made of sums over neighbours. PyTorch's ``embedding_bag`` sums groups of rows without gathering them first.
Here both the sums and their gradients use it: x_i' = sum_j w_ji x_j over 1,038,000 messages takes 4 ms for d = 64,
where a gather and an ``index_add`` take 185 (one thread; ``experiments/speed/propagation.py``).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import embedding_bag
from torch.nn.parameter import is_lazy

from structpe.data.batch import CSRAdjacency
from structpe.errors import ConfigError, StructPEError, needing, reason_of
from structpe.plain.options import LAYERS, WIDTH, Builder
from structpe.registry import Registry, unknown

__all__ = [
    "CONVOLUTIONS",
    "GAT",
    "GCN",
    "GIN",
    "GINE",
    "SAGE",
    "Asked",
    "Convolution",
    "ConvolutionFactory",
    "FromPyG",
    "GATv2",
    "GatedGCN",
    "chosen",
    "gather",
    "gather_target",
    "propagate",
    "propagate_rectified",
    "propagate_weighted",
    "pyg_class",
    "scatter",
    "takes_edges",
]


CHUNK = 1 << 12
"""Messages whose products a CPU computes at a time: for a million of d = 64, four times as fast as all at once."""


def propagate(x: Float[Tensor, "N d"], adjacency: CSRAdjacency) -> Float[Tensor, "N d"]:
    """x_i' = sum over the messages j -> i of x_j."""
    result: Tensor = _Propagate.apply(x, adjacency)  # type: ignore[no-untyped-call]
    return result


def propagate_weighted(
    x: Float[Tensor, "N d"], weights: Float[Tensor, " E"], adjacency: CSRAdjacency
) -> Float[Tensor, "N d"]:
    """x_i' = sum over the messages j -> i of w_ji x_j."""
    result: Tensor = _PropagateWeighted.apply(x, weights, adjacency)  # type: ignore[no-untyped-call]
    return result


def gather(x: Float[Tensor, "N d"], adjacency: CSRAdjacency) -> Float[Tensor, "E d"]:
    """x_j for each message j -> i."""
    result: Tensor = _Gather.apply(x, adjacency)  # type: ignore[no-untyped-call]
    return result


def gather_target(x: Float[Tensor, "N d"], adjacency: CSRAdjacency) -> Float[Tensor, "E d"]:
    """x_i for each message j -> i."""
    result: Tensor = _GatherTarget.apply(x, adjacency)  # type: ignore[no-untyped-call]
    return result


def scatter(messages: Float[Tensor, "E d"], adjacency: CSRAdjacency) -> Float[Tensor, "N d"]:
    """The sum of the messages to each node."""
    result: Tensor = _Scatter.apply(messages, adjacency)  # type: ignore[no-untyped-call]
    return result


def propagate_rectified(
    x: Float[Tensor, "N d"], edges: Float[Tensor, "E d"], adjacency: CSRAdjacency
) -> Float[Tensor, "N d"]:
    """x_i' = sum over the messages j -> i of max(0, x_j + e_ji); one vector per message is kept for the gradient."""
    result: Tensor = _PropagateRectified.apply(x, edges, adjacency)  # type: ignore[no-untyped-call]
    return result


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, adjacency: CSRAdjacency) -> Tensor:
        ctx.adjacency = adjacency
        return _sums(x, adjacency.source, adjacency.starts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _sums(grad, ctx.adjacency.target_by_source, ctx.adjacency.source_starts), None


class _PropagateWeighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor, adjacency: CSRAdjacency) -> Tensor:
        ctx.adjacency = adjacency
        ctx.save_for_backward(x, weights)
        return _sums(x, adjacency.source, adjacency.starts, weights)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (x, weights), there = ctx.saved_tensors, ctx.adjacency
        of_x = _sums(grad, there.target_by_source, there.source_starts, weights.index_select(0, there.by_source))
        return of_x, _products(x, there.source, grad, there.target), None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, adjacency: CSRAdjacency) -> Tensor:
        ctx.adjacency = adjacency
        return x.index_select(0, adjacency.source)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _sums(grad, ctx.adjacency.by_source, ctx.adjacency.source_starts), None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Tensor, adjacency: CSRAdjacency) -> Tensor:
        ctx.adjacency = adjacency
        return _all(messages, adjacency)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad.index_select(0, ctx.adjacency.target), None


class _PropagateRectified(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, edges: Tensor, adjacency: CSRAdjacency) -> Tensor:
        messages = x.index_select(0, adjacency.source).add_(edges).relu_()
        ctx.adjacency = adjacency
        ctx.save_for_backward(messages)
        return _all(messages, adjacency)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (messages,), adjacency = ctx.saved_tensors, ctx.adjacency
        of_messages = torch.ops.aten.threshold_backward(grad.index_select(0, adjacency.target), messages, 0)
        return _sums(of_messages, adjacency.by_source, adjacency.source_starts), of_messages, None


class _GatherTarget(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, adjacency: CSRAdjacency) -> Tensor:
        ctx.adjacency = adjacency
        return x.index_select(0, adjacency.target)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _all(grad, ctx.adjacency), None


def _all(messages: Tensor, adjacency: CSRAdjacency) -> Tensor:
    """The sum of the messages to each node."""
    return _sums(messages, torch.arange(len(messages), device=messages.device), adjacency.starts)


def _products(x: Tensor, first: Tensor, y: Tensor, second: Tensor) -> Tensor:
    """x[first_k] . y[second_k] for each k; on a CPU in chunks, whose gathered rows stay in its caches."""
    if x.device.type != "cpu" or torch.compiler.is_compiling():  # a compiled graph would fix the number of chunks
        return torch.bmm(x.index_select(0, first)[:, None], y.index_select(0, second)[:, :, None]).flatten()
    pairs = zip(torch.split(first, CHUNK), torch.split(second, CHUNK), strict=True)
    each = [torch.bmm(x.index_select(0, i)[:, None], y.index_select(0, j)[:, :, None]).flatten() for i, j in pairs]
    return torch.cat(each)


def _sums(rows: Tensor, which: Tensor, starts: Tensor, weights: Tensor | None = None) -> Tensor:
    """sum_k w_k rows[which_k] over each group of k; w_k is 1 without weights."""
    if not len(which):  # embedding_bag does not accept an empty table
        return rows.new_zeros(len(starts) - 1, rows.shape[1])
    options: dict[str, Any] = {"mode": "sum", "include_last_offset": True, "per_sample_weights": weights}
    return embedding_bag(which, rows.contiguous(), starts, **options)


CONVOLUTIONS: Registry[type[Convolution]] = Registry("structpe.nn.convolutions", "convolution", ConfigError)
"""All convolutions, by name."""


class Convolution(nn.Module, ABC):
    """Base class: new vectors of nodes and edges of the same width d.

    Args:
        width: d.

    Attributes:
        reads_edges: whether it needs vectors of edges; edges without features share one learned vector.
        updates_edges: whether it also computes new vectors of edges for the next layer.
        rectifies: whether it has its own rectifier, between two linear maps. A hybrid layer adds no activation after
            it; one with a linear residual does.
        keeps_sums: whether it is an affine map of the vectors of nodes; several in a row are then equal to one.
        glorot: whether its maps are initialised as in Glorot & Bengio 2010, larger than PyTorch's. A linear residual
            beside it is then initialised in the same way.
    """

    name: ClassVar[str]
    reads_edges: ClassVar[bool] = False
    updates_edges: ClassVar[bool] = False
    rectifies: ClassVar[bool] = False
    keeps_sums: ClassVar[bool] = False
    glorot: ClassVar[bool] = False

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            cls.name = name
            CONVOLUTIONS.add(name, cls)

    @abstractmethod
    def __init__(self, width: int) -> None:
        super().__init__()

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "N d"], edges: Float[Tensor, "E d"] | None, adjacency: CSRAdjacency
    ) -> tuple[Float[Tensor, "N d"], Float[Tensor, "E d"] | None]:
        """New vectors of nodes, and of edges.

        Args:
            x: vectors of nodes.
            edges: vectors of edges, one per message; None if the convolution does not read them.
            adjacency: the messages.
        """


class GAT(Convolution, name="gat"):
    """x_i' = sum_j a_ji W x_j,  a_ji = softmax_j(leaky(u . W x_i + v . W x_j)),  each node its own neighbour too.

    Veličković et al. 2018, equations 1 to 4; one head, leaky(z) = max(z, 0.2 z), without dropout of weights. A
    self-loop of the graph is one more message. Edge features are not read. Weights are computed in float32 at least.
    """

    glorot = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.linear = nn.Linear(width, width, bias=False)
        self.scores = nn.Linear(width, 2, bias=False)  # u and v
        for linear in (self.linear, self.scores):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        x = self.linear(x)
        of_target, of_source = self.scores(x).to(torch.promote_types(x.dtype, torch.float32)).split(1, dim=-1)
        score = functional.leaky_relu(gather_target(of_target, adjacency) + gather(of_source, adjacency), 0.2)
        own = functional.leaky_relu(of_target + of_source, 0.2)
        largest = _largest(score.detach(), own.detach(), adjacency)
        weight, own = (score - largest.index_select(0, adjacency.target)).exp(), (own - largest).exp()
        total = scatter(weight, adjacency) + own
        weight = weight / gather_target(total, adjacency)
        return propagate_weighted(x, weight[:, 0].to(x.dtype), adjacency) + (own / total).to(x.dtype) * x, edges


def _largest(score: Tensor, own: Tensor, adjacency: CSRAdjacency) -> Tensor:
    """The largest score of each node, (N, 1), which is subtracted to avoid an overflow of exponentials."""
    return own.scatter_reduce(0, adjacency.target[:, None], score, "amax")


class GatedGCN(Convolution, name="gatedgcn"):
    """x_i' = A x_i + sum_j g_ji B x_j / (sum_j g_ji + 1e-6),  g_ji = sigmoid(e'_ji),  e'_ji = C e_ji + D x_i + E x_j.

    Dwivedi et al. 2023, "Benchmarking Graph Neural Networks", whose edge gates are divided by their sum. Normalisation,
    rectifier and residual connection, of nodes and of edges, are the layer's.
    """

    reads_edges = True
    updates_edges = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.own, self.edge, self.of_target = (nn.Linear(width, width) for _ in range(3))
        self.of_source = nn.Linear(width, 2 * width)  # B and E

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        assert edges is not None
        passed, of_source = gather(self.of_source(x), adjacency).chunk(2, dim=-1)
        edges = self.edge(edges) + gather_target(self.of_target(x), adjacency) + of_source
        gates = edges.sigmoid()
        # One sum for both: gated vectors and gates side by side.
        summed, whole = scatter(torch.cat([gates * passed, gates], dim=-1), adjacency).chunk(2, dim=-1)
        return self.own(x) + summed / (whole + 1e-6), edges


class GATv2(Convolution, name="gatv2"):
    """x_i' = sum_j a_ji V x_j,  a_ji = softmax_j(a . leaky(U x_i + V x_j + W e_ji)), each node its own neighbour too.

    Brody et al. 2022, equations 3, 4 and 7; one head. It is PyTorch Geometric's GATv2Conv; e_ii is the mean of the
    vectors of the edges to node i.

    Raises:
        MissingExtra: PyTorch Geometric is not installed.
    """

    reads_edges = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        with needing("torch_geometric", "pyg"):
            from torch_geometric.nn import GATv2Conv  # slow to import

        self.convolution = GATv2Conv(width, width, edge_dim=width)

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        return self.convolution(x, torch.stack([adjacency.source, adjacency.target]), edge_attr=edges), edges


class GCN(Convolution, name="gcn"):
    """x_i' = W (x_i / D_i + sum_j x_j / sqrt(D_i D_j)) + b,  D_i = 1 + number of messages to i.

    Kipf & Welling 2017, equation 2; each node is its own neighbour. A self-loop of the graph is one more message, where
    PyG has one in place of it. Edge features are not read. In a sample, D is that of the full graph, and the messages
    that were drawn stand for all.
    """

    keeps_sums = True
    glorot = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.linear = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        exact = torch.promote_types(x.dtype, torch.float32)  # float16 ends at 65,504, degrees do not
        root = (1 + adjacency.whole_degrees).to(exact).rsqrt().to(x.dtype)[:, None]
        x = root * x
        sums = propagate(x, adjacency)
        if adjacency.whole is not None:
            sums = sums * (adjacency.whole / adjacency.degrees.clamp(min=1)).to(x.dtype)[:, None]
        return self.linear(root * (sums + x)), edges


class GIN(Convolution, name="gin"):
    """x_i' = MLP((1 + e) x_i + sum_j x_j),  MLP = Linear, rectifier, Linear; e is learned, 0 at first.

    Xu et al. 2019, equation 4.1. Edge features are not read.
    """

    rectifies = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.own = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        return self.mlp((1 + self.own) * x + propagate(x, adjacency)), edges


class GINE(GIN, name="gine"):
    """x_i' = MLP((1 + e) x_i + sum_j relu(x_j + e_ji)),  MLP = Linear, rectifier, Linear; e is learned, 0 at first.

    Hu et al. 2020, "Strategies for Pre-training Graph Neural Networks"; the rectifier inside the sum and e are those of
    OGB's code.
    """

    reads_edges = True

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        assert edges is not None
        return self.mlp(torch.addcmul(propagate_rectified(x, edges, adjacency), x, 1 + self.own)), edges


class SAGE(Convolution, name="sage"):
    """x_i' = A x_i + B mean_j x_j;  without neighbours the mean is 0.

    Hamilton et al. 2017, section 3.3, without its normalisation to length 1. Edge features are not read.
    """

    keeps_sums = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.own, self.neighbours = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        mean = propagate(x, adjacency) / adjacency.degrees.clamp(min=1).to(x.dtype)[:, None]
        return self.own(x) + self.neighbours(mean), edges


WIDTHS = ("in_channels", "out_channels", "channels", "edge_dim")
"""Arguments that are the width, unless they are among the options."""
PARAMETERS = 10**8
"""Of a convolution, unless its width asks for more."""


class FromPyG(Convolution):
    """x' = convolution(x, edge_index, edge_attr), of a subclass of PyG's ``MessagePassing``.

    ``in_channels``, ``out_channels``, ``channels`` and ``edge_dim`` are the width if the options do not say otherwise.
    A list of widths stands for a network with rectifiers between linear maps (``nn``, as in ``GINConv``), and a list of
    numbers for a tensor (``deg`` of ``PNAConv``).

    Args:
        path: of the class, such as ``torch_geometric.nn.SAGEConv``.
        options: arguments of its constructor.

    Raises:
        ConfigError: there is no such class or option; a width among the options is larger than 65,536, another number
            larger than 4,096, or there are more than 64 d^2 parameters and more than 10^8; the class cannot be made of
            these options, or it does not make d numbers per node of the vectors of nodes, the edges and, if it reads
            them, the vectors of edges.
        MissingExtra: PyTorch Geometric is not installed.
    """

    def __init__(self, width: int, path: str, options: Mapping[str, Any]) -> None:
        super().__init__(width)
        cls = pyg_class(path)
        _check_sizes(cls, width, path, options)
        try:
            self.convolution = cls(**_arguments(cls, width, path, options))
        except StructPEError:
            raise
        except Exception as error:  # constructors raise errors of any type
            wrong = f"convolution {path!r} cannot be made with the options {dict(options)}: {reason_of(error)}"
            raise ConfigError(wrong) from None
        self._check(width, path, takes_edges(cls, options))

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        index = torch.stack([adjacency.source, adjacency.target])
        if edges is None:
            return self.convolution(x, index), None
        return self.convolution(x, index, edge_attr=edges), edges

    def _check(self, width: int, path: str, reads_edges: bool) -> None:
        """Run it on two nodes, without drawing random numbers; on the device ``meta`` there are no values to run on."""
        if any(each.is_meta for each in self.convolution.parameters()):
            return
        nodes, index = torch.zeros(2, width), torch.tensor([[0, 1], [1, 0]])
        edges = {"edge_attr": torch.zeros(2, width)} if reads_edges else {}
        self.convolution.eval()
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=()):
                out = self.convolution(nodes, index, **edges)
        except Exception as error:
            wrong = (
                f"convolution {path!r} does not take the arguments of a layer, x, edge_index and edge_attr (if read)"
            )
            raise ConfigError(f"{wrong}: {reason_of(error) or type(error).__name__}") from None
        self.convolution.train()
        if not isinstance(out, Tensor) or out.shape != nodes.shape:
            given = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            wrong = f"convolution {path!r} makes {given} of two nodes of width {width}, and a layer needs (2, {width})"
            remedy = "with several heads give out_channels, the width divided by heads, or concat: false"
            raise ConfigError(f"{wrong}; {remedy}")


def pyg_class(path: str) -> Any:
    """The class at a path.

    Modules of ``torch_geometric`` are imported; any other must have been imported before, since importing runs code,
    and a configuration may come from others.

    Raises:
        ConfigError: there is none, or it is not a ``MessagePassing``.
        MissingExtra: PyTorch Geometric is not installed.
    """
    with needing("torch_geometric", "pyg"):
        from torch_geometric.nn import MessagePassing
    where, _, name = path.rpartition(".")
    if where.partition(".")[0] != "torch_geometric" and where not in sys.modules:
        wrong = f"convolution {path!r}: module {where!r} is not imported"
        raise ConfigError(f"{wrong}; give a path in 'torch_geometric.', or import the module in the program first")
    try:
        found = vars(importlib.import_module(where))
    except ImportError as error:
        raise ConfigError(f"convolution {path!r}: {reason_of(error)}") from None
    known = [each for each, value in found.items() if inspect.isclass(value) and issubclass(value, MessagePassing)]
    if name not in known:
        raise ConfigError(f"{where}: {unknown('MessagePassing', name, sorted(known))}")
    return found[name]


def takes_edges(cls: Any, options: Mapping[str, Any]) -> bool:
    """Whether a class reads vectors of edges with these options."""
    return "edge_attr" in inspect.signature(cls.forward).parameters and options.get("edge_dim", 1) is not None


def _arguments(cls: Any, width: int, path: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor.

    Raises:
        ConfigError: there is no such option.
    """
    own = inspect.signature(cls).parameters
    named = {name: each for name, each in own.items() if each.kind is not each.VAR_KEYWORD}
    inherited = () if len(named) == len(own) else ("aggr", "aggr_kwargs", "flow", "node_dim", "decomposed_layers")
    Builder(ConfigError).check_names(list(dict.fromkeys([*named, *inherited])), options, f"convolution {path!r}")
    given = {name: width for name in WIDTHS if name in named and _is_needed(named[name])}
    return {**given, **{name: _value(name, value, own) for name, value in options.items()}}


def _check_sizes(cls: Any, width: int, path: str, options: Mapping[str, Any]) -> None:
    """Check that a convolution is not too large, by making it without memory.

    Raises:
        ConfigError: it is, or there is no such option.
    """
    own = inspect.signature(cls).parameters
    for name, value in options.items():
        most = WIDTH if name == "nn" or name.endswith(("channels", "edge_dim")) else LAYERS
        if not _is_tensor(name, own) and (number := max(_whole(value), default=0)) > most:
            given = f"{number}" if number < 10**20 else "a number of more than 20 digits"
            raise ConfigError(f"convolution {path!r} has {given} in its option {name!r}; {most} at most")
    try:
        with torch.device("meta"):
            parts = [*cls(**_arguments(cls, width, path, options)).parameters()]
    except StructPEError:
        raise
    except Exception:  # either it is invalid, and making it will fail, or its constructor reads values of tensors
        return
    count, most = sum(each.numel() for each in parts if not is_lazy(each)), max(PARAMETERS, 64 * width**2)
    if count > most:
        wrong = f"convolution {path!r} has {count} parameters with these options, of width {width}"
        raise ConfigError(f"{wrong}; {most} at most, give smaller numbers")


def _whole(value: Any) -> Iterator[int]:
    """All whole numbers within lists and mappings."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, list | tuple | Mapping):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _whole(each)


def _is_tensor(name: str, own: Mapping[str, inspect.Parameter]) -> bool:
    return name in own and own[name].annotation in (Tensor, "Tensor")


def _is_needed(argument: inspect.Parameter) -> bool:
    return argument.default is argument.empty or argument.name == "edge_dim"


def _value(name: str, value: Any, own: Mapping[str, inspect.Parameter]) -> Any:
    """Convert a list to the type of the argument: a tensor, or a network."""
    if not isinstance(value, list | tuple) or name not in own:
        return value
    if _is_tensor(name, own):
        return torch.tensor(value)
    if name != "nn":
        return value
    from torch_geometric.nn import MLP

    return MLP(list(value), norm=None)


Asked: TypeAlias = str | dict[str, Any]
"""A name, or ``name`` and options."""


@dataclass(frozen=True)
class ConvolutionFactory:
    """A convolution that is not made yet; see :class:`Convolution`.

    Attributes:
        make: makes one of a width.
        reads_edges: whether it needs vectors of edges.
        rectifies: whether it has a rectifier of its own.
        keeps_sums: whether it is known to be an affine map.
    """

    make: Callable[[int], Convolution]
    reads_edges: bool
    rectifies: bool = False
    keeps_sums: bool = False


def chosen(asked: Asked) -> ConvolutionFactory:
    """The convolution of a name of ``CONVOLUTIONS``, or of the path of a class of PyTorch Geometric.

    Raises:
        ConfigError: there is none, or no such option.
        MissingExtra: PyTorch Geometric is not installed.
    """
    options = {} if isinstance(asked, str) else dict(asked)
    name = asked if isinstance(asked, str) else options.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError(f"a convolution is a name, or a mapping with 'name' and options; given is {asked}")
    if "." in name:
        return ConvolutionFactory(partial(FromPyG, path=name, options=options), takes_edges(pyg_class(name), options))
    cls = CONVOLUTIONS[name]
    Builder(ConfigError).check_names((), options, f"convolution {name!r}")
    return ConvolutionFactory(cls, cls.reads_edges, cls.rectifies, cls.keeps_sums)
