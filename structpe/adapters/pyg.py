"""Encodings and position models in PyTorch Geometric.

::

    transform = AddEncoding("random-walk", Distance(limit=8))        # pe_random_walk (n, k), pe_distance (n n,)
    batch = next(iter(DataLoader([transform(data) for data in graphs], batch_size=32)))
    handle = inject(model, position)                                 # into the attention of its GPSConv layers
    with handle.reading(batch):
        out = model(batch.x, batch.edge_index, batch.batch)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from structpe.adapters._masks import added, written
from structpe.converters import as_structure
from structpe.data.encode import join
from structpe.encodings.base import ENCODINGS, Encoded, Encoding, check_pairs
from structpe.errors import EncodingError, PositionError, needing
from structpe.positions import PositionModel, Positions, Site

__all__ = ["AddEncoding", "Handle", "inject", "positions"]

NAME = "structpe"
"""Of the submodule."""


class AddEncoding:
    """A ``transform`` or ``pre_transform`` that adds encodings to a ``Data``, in forms that PyG batches.

    | encoding | attribute |
    |---|---|
    | of units | ``pe_NAME`` (n, ...) |
    | of all pairs | ``pe_NAME`` (n n, ...), row by row; of a batch, those of one graph after the other |
    | of listed pairs | ``pe_NAME`` (e, ...), and ``pe_NAME_index`` (2, e) with the numbers of nodes in the batch |

    :func:`positions` makes of a batch what position models read. ``many`` encodes a list at once, which is faster.

    Args:
        encodings: encodings, or their names.

    Raises:
        EncodingError: none, an unknown one, or two of one name.
    """

    def __init__(self, *encodings: Encoding | str) -> None:
        made = [ENCODINGS[each]() if isinstance(each, str) else each for each in encodings]
        names = [_attribute(each) for each in made]
        if not made or len(set(names)) < len(names):
            raise EncodingError(f"AddEncoding takes encodings of different names; given are {list(encodings)}")
        self.encodings = tuple(made)

    def __call__(self, data: Any) -> Any:
        """A copy of a ``Data`` with the encodings."""
        return self.many([data])[0]

    def __repr__(self) -> str:
        return f"AddEncoding({', '.join(map(repr, self.encodings))})"

    def many(self, graphs: Sequence[Any]) -> list[Any]:
        """Copies of all graphs with the encodings, encoded together.

        Raises:
            EncodingError: a graph lacks what an encoding needs, or has several units for a node.
        """
        structures = [as_structure(data) for data in graphs]
        copies = [data.clone() for data in graphs]
        if odd := [each for each in structures if each.unit_count != each.size]:
            raise odd[0].error("its nodes have several units; PyG has rows for nodes only")
        check_pairs(structures, self.encodings)
        for encoding in self.encodings:
            if encoding.ragged:
                raise EncodingError(
                    f"encoding {encoding.name!r} gives sequences of different lengths, which PyG cannot batch; call "
                    f"structpe.encode for a batch"
                )
            for data, encoded in zip(copies, encoding.many(structures), strict=True):
                for name, value in _tensors(encoding, encoded).items():
                    data[name] = value
        return copies


def positions(batch: Any, encodings: Sequence[Encoding]) -> Positions:
    """The positions of a ``Data`` or ``Batch`` with encodings, padded as PyG's ``to_dense_batch`` pads.

    Args:
        batch: from a ``DataLoader`` of graphs that :class:`AddEncoding` was applied to.
        encodings: of a position model.

    Raises:
        EncodingError: the batch lacks an encoding.
    """
    ends = batch.ptr.tolist() if getattr(batch, "ptr", None) is not None else [0, int(batch.num_nodes)]
    whole = {}
    for encoding in encodings:
        name = _attribute(encoding)
        if name not in batch:
            raise EncodingError(
                f"the batch has no {name}, the encoding {encoding!r}; apply AddEncoding({encoding!r}) to its graphs"
            )
        whole[encoding] = _encoded(encoding, batch, name, list(pairwise(ends)))
    return join(whole)


def inject(model: nn.Module, position: PositionModel) -> Handle:
    """Put a position model into the attention of all ``GPSConv`` layers of a model, whose submodule it becomes.

    With a bias of zero the model computes what it did: to the last bit if the bias has no gradient; if it has, PyTorch
    computes attention by another kernel. Bind each pass to its graphs by ``reading``.

    Args:
        model: with one ``GPSConv`` or more, or one itself, with attention of the type ``multihead``.
        position: built for their width, heads and number; the i-th layer is the i-th in ``model.modules()``.

    Raises:
        PositionError: there is no such layer, a position model is there already, sizes differ, or the position model
            acts on something else than scores.
        MissingExtra: ``torch_geometric`` is not installed.
    """
    with needing("torch_geometric", "pyg"):
        from torch_geometric.nn import GPSConv
    layers = [each for each in model.modules() if isinstance(each, GPSConv)]
    if not layers or any(not isinstance(each.attn, nn.MultiheadAttention) for each in layers):
        raise PositionError(
            f"{type(model).__name__} has {len(layers)} GPSConv layers; it needs one or more, with attn_type='multihead'"
        )
    needed = {(each.attn.embed_dim, each.attn.num_heads) for each in layers}
    if needed != {(position.dims.width, position.dims.heads)} or position.dims.layers != len(layers):
        raise PositionError(
            f"position model {position.name!r} was built for {position.dims}; the {len(layers)} GPSConv layers have "
            f"(width, heads) {', '.join(map(str, sorted(needed)))}"
        )
    if position.sites - {"terms"} or position.own_attention:
        raise PositionError(
            f"position model {position.name!r} acts on something else than the scores of attention; add encodings of "
            f"nodes to the features x, see AddEncoding"
        )
    if NAME in model._modules:
        raise PositionError("there is a position model already; give both as one, first + second, or eject it")
    model.add_module(NAME, position)
    return Handle(position, [each.attn for each in layers])


class Handle:
    """A position model in the layers of a model.

    Args:
        position: the position model.
        attentions: of the layers.
    """

    def __init__(self, position: PositionModel, attentions: Sequence[nn.MultiheadAttention]) -> None:
        self.position = position
        self._masks: list[Tensor] | None = None
        self._plain = False
        self._hooks = [
            attention.register_forward_pre_hook(_Hook(self, number), with_kwargs=True)
            for number, attention in enumerate(attentions)
        ]

    @contextmanager
    def reading(self, batch: Any) -> Iterator[None]:
        """Passes in the block are over this batch of PyG, or these :class:`Positions`; None for passes without."""
        found = batch
        if batch is not None and not isinstance(batch, Positions):
            found = positions(batch, self.position.encodings)
        self._plain = found is None
        self._masks = None if found is None else self._written(found)
        try:
            yield
        finally:
            self._masks, self._plain = None, False

    def remove(self) -> None:
        """Take the position model out of the attention; its numbers stay with the model."""
        for hook in self._hooks:
            hook.remove()

    def named(self, number: int, named: dict[str, Any]) -> dict[str, Any]:
        """The named arguments of an attention with the mask of its layer.

        Raises:
            PositionError: the pass is bound to no graphs.
        """
        if self._plain:
            return named
        if self._masks is None:
            raise PositionError(
                "this model has a position model, and the pass is bound to no graphs; write with "
                "handle.reading(batch): around it, or reading(None) for a pass without"
            )
        return added(named, self._masks[number], "attn_mask", "key_padding_mask")

    def _written(self, given: Positions) -> list[Tensor]:
        position = self.position
        like = next((each.detach() for each in position.parameters()), torch.zeros(()))
        prepared = position.prepare(given.to(like.device, like.dtype))
        terms = [position.terms(prepared, Site(i, position.training)) for i in range(position.dims.layers)]
        return written(terms, like, position.dims.heads, given, None)


class _Hook:
    """Adds the mask of a layer.

    Args:
        handle: of the position model.
        number: of the layer.
    """

    def __init__(self, handle: Handle, number: int) -> None:
        self.handle, self.number = handle, number

    def __call__(self, _: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return given, self.handle.named(self.number, named)


def _attribute(encoding: Encoding) -> str:
    return f"pe_{encoding.name.replace('-', '_')}"


def _tensors(encoding: Encoding, encoded: Encoded) -> dict[str, Tensor]:
    """The attributes of one graph. PyG adds the number of earlier nodes to what is named ``index``."""
    name = _attribute(encoding)
    if encoded.index is None:
        return {name: torch.from_numpy(np.array(encoded.values))}
    if encoded.listed is not None:
        listed = torch.from_numpy(np.ascontiguousarray(encoded.listed.T).astype(np.int64))
        return {name: torch.from_numpy(np.array(encoded.distinct[encoded.index])), f"{name}_index": listed}
    pairs = encoded.pairs()
    return {name: torch.from_numpy(np.array(pairs).reshape(-1, *pairs.shape[2:]))}


def _encoded(encoding: Encoding, batch: Any, name: str, ends: list[tuple[int, int]]) -> list[Encoded]:
    """The values of each graph of a batch."""
    values = batch[name].cpu().numpy()
    if encoding.arity == 1:
        return [Encoded(values[start:stop]) for start, stop in ends]
    if encoding.sparse:
        index = batch[f"{name}_index"].cpu().numpy()
        of = [(start, stop, (index[0] >= start) & (index[0] < stop)) for start, stop in ends]
        return [Encoded.of_list(index[:, mine].T - start, values[mine], stop - start) for start, stop, mine in of]
    sizes = [stop - start for start, stop in ends]
    parts = np.split(values, np.cumsum(np.square(sizes))[:-1])
    if values.dtype.kind in "iu" and values.ndim == 1:
        return [Encoded.of_pairs(part.reshape(n, n)) for part, n in zip(parts, sizes, strict=True)]
    return [Encoded(part, np.arange(n * n).reshape(n, n)) for part, n in zip(parts, sizes, strict=True)]
