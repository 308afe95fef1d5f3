"""Position models with PyTorch's own attention and Transformers.

::

    masks = additive_masks(position, positions, present)             # (b, h, n, n) for each layer
    scaled_dot_product_attention(q, k, v, attn_mask=masks[0])
    nn.MultiheadAttention(64, 4, batch_first=True)(x, x, x, attn_mask=masks[0].flatten(0, 1))

    structpe.inject(encoder, "spr", start="own")                     # an nn.TransformerEncoder, nn.Transformer, ...
    encoder(x, structpe=positions, src_key_padding_mask=~present)

    flex_attention(q, k, v, **flex(q, k, terms))                     # tables are read pair by pair
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from structpe.adapters._attentions import AttentionHost, OfLayer
from structpe.adapters._injection import Injected, Layers, Seat, Where, size_of
from structpe.adapters._passes import Altered
from structpe.attention import additive
from structpe.attention.flex import block_mask, kernel_options, modifications
from structpe.errors import PositionError, UnsupportedTerm
from structpe.positions import PositionModel, Positions, Site
from structpe.positions.build import check_model
from structpe.terms import Terms

__all__ = ["PytorchHost", "additive_masks", "flex"]


def additive_masks(
    position: PositionModel,
    positions: Positions,
    present: Bool[Tensor, "b n"] | None = None,
    causal: bool = False,
    training: bool = False,
) -> list[Float[Tensor, "b h n n"]]:
    """The additive attention mask of each layer: what the position model adds to scores, and -inf for forbidden pairs.

    Use it as ``attn_mask`` of ``scaled_dot_product_attention``; for ``nn.MultiheadAttention`` call ``.flatten(0, 1)``,
    and do not give ``key_padding_mask``. A query that may attend to nothing, such as padding, has a row of zeros, for
    which PyTorch would return NaN. Layers with the same terms share a tensor.

    Args:
        position: the position model. The masks have its dtype, or float32 if it has no parameters. PyTorch needs the
            dtype of the queries, but does not always check it: results for float64 queries and a float32 mask may be
            wrong.
        positions: the values of its encodings, from :func:`structpe.encode`.
        present: which places hold a unit; by default those of the positions.
        causal: whether units attend only to themselves and to earlier ones.
        training: whether this is a training step, in which some models are random.

    Raises:
        UnsupportedTerm: the model has terms that do not add to scores.
        PositionError: the number of units is unknown, as there are only listed pairs and no ``present``.
    """
    check_model(position, "additive_masks")
    prepared = position.prepare(positions)
    layers = [position.terms(prepared, Site(layer, training)) for layer in range(position.dims.layers)]
    like = next((each.detach() for each in (*position.parameters(), *position.buffers())), torch.zeros(()))
    return _written(layers, like, position.dims.heads, positions, present, causal)


def flex(q: Float[Tensor, "b h n d"], k: Float[Tensor, "b h m d"], terms: Terms) -> dict[str, Any]:
    """Arguments of PyTorch's ``flex_attention``: ``score_mod``, ``block_mask``, ``scale`` and ``kernel_options``.

    Tables are read pair by pair, so no tensor has an entry for each pair, and blocks of forbidden pairs are skipped.
    The kernel ``flex`` of :func:`structpe.attend` uses these, and also computes the other terms.

    Args:
        q, k: queries and keys, after ``maps`` if there are any.
        terms: the terms of a layer: biases, factors, gates, vectors at keys and queries, masks and listed pairs.

    Raises:
        UnsupportedTerm: ``flex_attention`` does not support one of the terms.
    """
    if lost := terms.used() & {"maps", "value", "product", "feature_map", "projection"}:
        raise UnsupportedTerm(
            f"flex_attention does not compute {', '.join(sorted(lost))}; call structpe.attend, or, for maps, apply "
            f"them first: for change in terms.maps: q, k = change(q, k)"
        )
    score_mod, masks = modifications(q, k, terms, captured=True)
    blocks = None if masks is None else block_mask(masks, q.shape[2], k.shape[2])
    scale, options = terms.scale / math.sqrt(q.shape[-1]), kernel_options(terms, q.dtype, captured=True)
    return {"score_mod": score_mod, "block_mask": blocks, "scale": scale, "kernel_options": options}


class PytorchHost(AttentionHost):
    """An ``nn.Transformer``, its encoder or decoder, a layer of these, or an ``nn.MultiheadAttention``."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        if isinstance(model, nn.MultiheadAttention):
            self.takes = self.takes - {"inputs", "layer"}
        elif isinstance(model, nn.Transformer):
            self.places = ("encoder", "decoder", "cross")
        elif isinstance(model, nn.TransformerDecoder | nn.TransformerDecoderLayer):
            self.places = ("decoder", "cross")

    def layers(self, where: Where) -> Layers:
        """The layers, each with its attention."""
        model: Any = self.model
        if isinstance(model, nn.MultiheadAttention):
            return [(model, model)]
        if isinstance(model, nn.Transformer):
            model = model.encoder if where == "encoder" else model.decoder
        found = model.layers if isinstance(model, nn.TransformerEncoder | nn.TransformerDecoder) else [model]
        return [(each, each.multihead_attn if where == "cross" else each.self_attn) for each in found]

    def enter(self, injected: Injected, found: Layers) -> list[Any]:
        """Let layers ask an injected model. Their hooks also disable PyTorch's fast path for inference."""
        made = super().enter(injected, found)
        encoder = self.model.encoder if isinstance(self.model, nn.Transformer) else self.model
        if isinstance(encoder, nn.TransformerEncoder) and injected.where == "encoder":
            # In nested tensors, layers see no padding.
            made.append(Altered(encoder, "use_nested_tensor", False))
        return made

    def hook(self, seat: Seat, layer: Any, attention: Any) -> OfLayer | None:
        """The hook of a layer; in cross-attention the layer's input stays."""
        if layer is attention or seat.injected.where == "cross":
            return None
        if isinstance(layer, nn.TransformerDecoderLayer):  # hands its masks on as they are
            return OfLayer(self, seat, batch_first=bool(attention.batch_first))
        return OfLayer(self, seat, ("src", "src_mask", "src_key_padding_mask"), bool(attention.batch_first))


def _written(
    layers: list[Terms], like: Tensor, heads: int, positions: Positions, present: Tensor | None, causal: bool
) -> list[Tensor]:
    """The mask (b, h, n, n) of each layer, with the dtype and on the device of ``like``; layers may share one."""
    there = positions.present if present is None else present
    size = size_of(positions) if there is None else (there.shape[0], there.shape[1])
    if size is None:
        raise PositionError("positions of listed pairs do not say how many units there are; give present")
    b, n = size
    like, extra = like.new_empty(b, heads, n, 0), Terms(causal=causal)
    if there is not None:
        extra += Terms(mask=(there.to(like.device)[:, None, None],))
    made: list[tuple[list[int], Tensor]] = []
    for terms in layers:
        of = [id(x) for name in ("bias", "factors", "mask", "pairs") for x in getattr(terms, name)]
        known = [mask for other, mask in made if other == of]
        made.append((of, known[0] if known else additive(terms + extra, like, n)))
    return [mask for _, mask in made]
