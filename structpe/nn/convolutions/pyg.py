"""Any convolution of PyTorch Geometric, by the path of its class."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from structpe.data.adjacency import CSRAdjacency
from structpe.errors import ConfigError, StructPEError, needing, reason_of
from structpe.nn.convolutions.base import Convolution
from structpe.plain.bounds import LAYERS, WIDTH
from structpe.plain.typed import Builder
from structpe.registry import unknown

__all__ = ["FromPyG", "pyg_class", "takes_edges"]

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
        width: d.
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
        except Exception as error:  # a constructor raises anything
            raise ConfigError(
                f"convolution {path!r} cannot be made with the options {dict(options)}: {reason_of(error)}"
            ) from None
        self._check(width, path, takes_edges(cls, options))

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        index = torch.stack([adjacency.source, adjacency.target])
        if edges is None:
            return self.convolution(x, index), None
        return self.convolution(x, index, edge_attr=edges), edges

    def _check(self, width: int, path: str, reads_edges: bool) -> None:
        """Run it on two nodes, without drawing random numbers; not on the device ``meta``, where nothing has values."""
        if any(each.is_meta for each in self.convolution.parameters()):
            return
        nodes, index = torch.zeros(2, width), torch.tensor([[0, 1], [1, 0]])
        edges = {"edge_attr": torch.zeros(2, width)} if reads_edges else {}
        self.convolution.eval()
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=()):
                out = self.convolution(nodes, index, **edges)
        except Exception as error:
            raise ConfigError(
                f"convolution {path!r} does not take what a layer has, which is x, edge_index and, where it reads "
                f"them, edge_attr: {reason_of(error) or type(error).__name__}"
            ) from None
        self.convolution.train()
        if not isinstance(out, Tensor) or out.shape != nodes.shape:
            given = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise ConfigError(
                f"convolution {path!r} makes {given} of two nodes of width {width}, and a layer needs (2, {width}); "
                f"with several heads give out_channels, the width divided by heads, or concat: false"
            )


def pyg_class(path: str) -> Any:
    """The class at a path.

    Modules of ``torch_geometric`` are imported; any other must have been imported before, since importing runs code
    and a configuration may be of others.

    Raises:
        ConfigError: there is none, or it is no ``MessagePassing``.
        MissingExtra: PyTorch Geometric is not installed.
    """
    with needing("torch_geometric", "pyg"):
        from torch_geometric.nn import MessagePassing
    where, _, name = path.rpartition(".")
    if where.partition(".")[0] != "torch_geometric" and where not in sys.modules:
        raise ConfigError(
            f"convolution {path!r}: module {where!r} is not imported; a path begins with 'torch_geometric.', or the "
            f"program imports the module first"
        )
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
    except Exception:  # it is wrong, which is said when it is made, or looks at numbers while it is made
        return
    count, most = sum(each.numel() for each in parts if not is_lazy(each)), max(PARAMETERS, 64 * width**2)
    if count > most:
        raise ConfigError(
            f"convolution {path!r} has {count} parameters with these options, of width {width}; {most} at most, give "
            f"smaller numbers"
        )


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
    """A list as what the argument takes."""
    if not isinstance(value, list | tuple) or name not in own:
        return value
    if _is_tensor(name, own):
        return torch.tensor(value)
    if name != "nn":
        return value
    from torch_geometric.nn import MLP

    return MLP(list(value), norm=None)
