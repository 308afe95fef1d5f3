"""The layer of all models: attention, message passing or both, cross-attention in a decoder, and feed-forward.

Layers of one forward pass share a :class:`Context`: prepared positions, the layout, masks and caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from structpe.attention import Layout, attend, attend_ragged
from structpe.attention.feature_maps import PositiveFeatures, elu_plus_one
from structpe.data.batch import Batch
from structpe.dropout import Dropout
from structpe.errors import ConfigError, PositionError
from structpe.nn.convolutions import Asked, chosen
from structpe.plain.options import HEADS, LAYERS, WIDTH, Inert, bounded, check_shares, few_parameters, refuse_inert
from structpe.positions import Block, Dims, PositionModel, Positions, Site, Sources
from structpe.terms import Terms

__all__ = [
    "Attention",
    "AttentionConfig",
    "Context",
    "KVCache",
    "Layer",
    "OwnAttention",
    "Past",
    "StackConfig",
    "activation_of",
    "changed",
    "norm_of",
]


_LEAST = 32
"""The smallest capacity of a buffer, in units."""


class KVCache:
    """The keys and values of earlier units for one attention, (b, h, m, d_h) each; a decoder appends to them.

    Without gradients they are written in place into buffers with room for more units, which double when they are full:
    a step copies only its own units. With gradients, each call makes new tensors instead, since backward reads the old
    ones. They are stored before ``Terms.maps``, because a map may depend on the number of units.

    Attributes:
        length: m, the number of units.
    """

    def __init__(self) -> None:
        self.length = 0
        self._buffers: tuple[Tensor, Tensor] | None = None

    @property
    def keys(self) -> Float[Tensor, "b h m c"] | None:
        """The keys of all units; None before the first. The next call of another method may overwrite them."""
        return None if self._buffers is None else self._buffers[0][:, :, : self.length]

    @property
    def values(self) -> Float[Tensor, "b h m d"] | None:
        """The values of all units, likewise."""
        return None if self._buffers is None else self._buffers[1][:, :, : self.length]

    @property
    def capacity(self) -> int:
        """The number of units for which the buffers have room."""
        return 0 if self._buffers is None else self._buffers[0].shape[2]

    def append(self, keys: Float[Tensor, "b h n c"], values: Float[Tensor, "b h n d"]) -> tuple[Tensor, Tensor]:
        """Append new keys and values, and return all."""
        first, last = self.length, self.length + keys.shape[2]
        if self._buffers is None:
            self._buffers = keys, values
        elif torch.is_grad_enabled():
            of_keys, of_values = (each[:, :, :first] for each in self._buffers)
            self._buffers = torch.cat([of_keys, keys], dim=2), torch.cat([of_values, values], dim=2)
        else:
            old = self._with_room(last)
            for buffer, new in zip(old, (keys, values), strict=True):
                buffer[:, :, first:last] = new
        self.length = last
        of_keys, of_values = self._buffers
        return of_keys[:, :, :last], of_values[:, :, :last]

    def select(self, rows: Int[Tensor, " rows"]) -> None:
        """Replace the batch by these rows of it, which may be more or fewer than before."""
        if self._buffers is not None:
            keys, values = (each[:, :, : self.length].index_select(0, rows) for each in self._buffers)
            self._buffers = keys, values

    def replace(self, rows: Int[Tensor, " changed"], by: Int[Tensor, " changed"], first: int) -> None:
        """Copy rows ``by`` to ``rows`` from unit ``first`` on; before it they must be equal already."""
        if self._buffers is None:
            return
        if torch.is_grad_enabled() or self._frozen():
            self._buffers = self._copied(self._buffers, self.length)
        for each in self._buffers:
            part = each[:, :, first : self.length]
            part[rows] = part[by]

    def _with_room(self, length: int) -> tuple[Tensor, Tensor]:
        """The buffers, made larger if they have no room for this number of units."""
        assert self._buffers is not None
        if length > self.capacity or self._frozen():
            self._buffers = self._copied(self._buffers, max(_LEAST, 1 << (length - 1).bit_length()))
        return self._buffers

    def _frozen(self) -> bool:
        """Whether the buffers were made in inference mode and this call is not: they cannot be written in place."""
        assert self._buffers is not None
        return self._buffers[0].is_inference() and not torch.is_inference_mode_enabled()

    def _copied(self, buffers: tuple[Tensor, Tensor], capacity: int) -> tuple[Tensor, Tensor]:
        """Copies of the buffers with this capacity."""
        keys, values = (each.new_empty(*each.shape[:2], capacity, each.shape[3]) for each in buffers)
        for copy, each in zip((keys, values), buffers, strict=True):
            copy[:, :, : self.length] = each[:, :, : self.length]
        return keys, values


def changed(rows: Int[Tensor, " b"]) -> Int[Tensor, " changed"]:
    """The places at which rows differ from 0, 1, 2, ..."""
    return (rows != torch.arange(len(rows), device=rows.device)).nonzero().squeeze(1)


@dataclass(frozen=True)
class Past:
    """The other inputs of the layers of a decoder, besides its units. All of them are in one bucket.

    Attributes:
        memory: per layer, (b, c, d) hidden vectors of the previous segment (Dai et al. 2019).
        caches: per layer, keys and values of the previous units.
        source: per layer, keys and values (b, h, m, d_h) of the encoder's output.
        reading: terms of the cross-attention to it, such as the mask of its padding.
    """

    memory: Sequence[Tensor] = ()
    caches: Sequence[KVCache] = ()
    source: Sequence[tuple[Tensor, Tensor]] = ()
    reading: Terms | None = None


class Context:
    """One forward pass over N units.

    Args:
        position: the position model.
        layout: how attention pads the units.
        positions: per bucket of ``position_layout``, the values of the encodings.
        position_layout: how units are padded for the position model; None for ``layout``.
        extra: terms added in every attention, such as a causal mask.
        batch: the batch of the units, for message passing and virtual nodes.
        past: the other inputs of a decoder.
        given: the terms of each layer, if they are known already and the position model acts on nothing else.
    """

    def __init__(
        self,
        position: PositionModel,
        layout: Layout,
        positions: Sequence[Positions],
        position_layout: Layout | None = None,
        extra: Terms | None = None,
        batch: Batch | None = None,
        past: Past | None = None,
        given: Sequence[Terms] | None = None,
    ) -> None:
        self.position, self.layout, self.sites = position, layout, position.sites
        self.position_layout = layout if position_layout is None else position_layout
        self.given = given
        self.prepared: list[Any] = [position.prepare(each) for each in positions] if given is None else [None]
        self.extra = extra
        self.batch, self.past = batch, Past() if past is None else past

    @classmethod
    def of(cls, position: PositionModel, batch: Batch) -> Context:
        """A pass over a batch in which each unit attends to its whole structure."""
        return cls(position, batch.layout, batch.positions, batch.position_layout, batch=batch)

    def inputs(self, x: Tensor) -> Tensor:
        """Apply the position model to the input (N, d) of the first layer."""
        return self._each(x, "inputs", self.position.inputs)

    def before(self, x: Tensor, site: Site) -> Tensor:
        """Apply the position model to the hidden vectors (N, d) before a layer."""
        return self._each(x, "layer", lambda rows, prepared: self.position.layer(rows, prepared, site))

    def terms(self, site: Site) -> list[Terms]:
        """The terms of attention of each bucket, without the mask for padding."""
        if self.position_layout is not self.layout:  # the position model has no terms
            return [self._with(Terms())] * len(self.layout)
        if self.given is not None:
            return [self._with(self.given[site.layer])]
        return [self._with(self.position.terms(prepared, site)) for prepared in self.prepared]

    def _with(self, terms: Terms) -> Terms:
        return terms if self.extra is None else terms + self.extra

    def _each(self, x: Tensor, site: str, answer: Callable[[Tensor, Any], Tensor]) -> Tensor:
        if site not in self.sites:
            return x
        each = zip(self.position_layout.padded(x), self.prepared, strict=True)
        return self.position_layout.flat([answer(rows, prepared) for rows, prepared in each])


class Attention(nn.Module):
    """softmax(QK^T / sqrt(d_h) ...) V with learned projections; the rest is in the terms.

    Args:
        dims: sizes of the Transformer.
        kernel: name of the attention kernel, or ``auto``.
        dropout: probability of dropping an attention weight in training.
        feature_map: replaces the exponential of a score, which makes attention linear; None for the exponential.
        zero_init: whether the weight of the output's projection begins at zero.
    """

    def __init__(
        self,
        dims: Dims,
        kernel: str = "auto",
        dropout: float = 0.0,
        feature_map: Callable[[Tensor], Tensor] | None = None,
        zero_init: bool = False,
    ) -> None:
        super().__init__()
        self.heads, self.kernel, self.dropout, self.feature_map = dims.heads, kernel, dropout, feature_map
        self.query = nn.Linear(dims.width, dims.width)
        self.key_value = nn.Linear(dims.width, 2 * dims.width)
        self.out = nn.Linear(dims.width, dims.width)
        for projection in (self.query, self.key_value, self.out):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)
        if zero_init:  # after the draw: a seed then gives all other weights the same values
            nn.init.zeros_(self.out.weight)

    def forward(
        self, x: Float[Tensor, "N d"], context: Context, site: Site, earlier: Float[Tensor, "b c d"] | None = None
    ) -> Float[Tensor, "N d"]:
        """Let each unit attend to the units of its structure, and to earlier units.

        Args:
            x: the units.
            context: of the pass; its cache, if any, holds keys and values of earlier units.
            site: the number of the layer, and whether it is trained.
            earlier: hidden vectors of earlier units, in one bucket; None if there are none.
        """
        terms = context.terms(site)
        if self.feature_map is not None:
            terms = [each + Terms(feature_map=self.feature_map) for each in terms]
        if "sources" in context.sites or context.past.caches or earlier is not None:
            rows = enumerate(context.layout.padded(x))
            mixed = context.layout.flat([self._bucket(part, i, terms[i], context, site, earlier) for i, part in rows])
        else:
            weight = torch.cat([self.query.weight, self.key_value.weight])
            projected = functional.linear(x, weight, torch.cat([self.query.bias, self.key_value.bias]))
            q, k, v = projected.view(len(x), 3, self.heads, -1).unbind(1)
            mixed = attend_ragged(q, k, v, context.layout, terms, self.kernel, self._dropped()).flatten(1)
        out: Tensor = self.out(mixed)
        return out

    def project(self, key: Float[Tensor, "b m d"], value: Float[Tensor, "b m d"]) -> tuple[Tensor, Tensor]:
        """Project keys and values (b, h, m, d_h), in one product if both are computed from the same vectors."""
        if key is value:
            keys, values = self.key_value(key).chunk(2, dim=-1)
        else:
            of_keys, of_values = self.key_value.weight.chunk(2)
            for_keys, for_values = self.key_value.bias.chunk(2)
            keys = functional.linear(key, of_keys, for_keys)
            values = functional.linear(value, of_values, for_values)
        return self._split(keys), self._split(values)

    def read(
        self, x: Float[Tensor, "b n d"], keys: Tensor, values: Tensor, terms: Terms | None
    ) -> Float[Tensor, "b n d"]:
        """Attend from the units ``x`` to projected ``keys`` and ``values``."""
        out: Tensor = self.out(self._mixed(x, keys, values, terms))
        return out

    def _bucket(
        self, x: Tensor, number: int, terms: Terms, context: Context, site: Site, earlier: Tensor | None
    ) -> Tensor:
        """One padded bucket (b, n, d), whose keys may be of more units than its queries."""
        keys_of = x if earlier is None else torch.cat([earlier, x], dim=1)
        sources = context.position.sources(Sources(x, keys_of, keys_of), context.prepared[number], site)
        keys, values = self.project(sources.key, sources.value)
        if context.past.caches:
            keys, values = context.past.caches[site.layer].append(keys, values)
        if mask := context.layout.mask(number):
            terms = terms + Terms(mask=mask)
        return self._mixed(sources.query, keys, values, terms)

    def _mixed(self, x: Tensor, keys: Tensor, values: Tensor, terms: Terms | None) -> Tensor:
        mixed = attend(self._split(self.query(x)), keys, values, terms, self.kernel, self._dropped())
        return mixed.transpose(1, 2).flatten(2)

    def _dropped(self) -> float:
        return self.dropout if self.training else 0.0

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class OwnAttention(nn.Module):
    """Attention that the position model computes itself, bucket by bucket. This module has no parameters.

    Args:
        dropout: probability of dropping an attention weight in training.
    """

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(
        self, x: Float[Tensor, "N d"], context: Context, site: Site, earlier: Tensor | None = None
    ) -> Float[Tensor, "N d"]:
        """Let each unit attend to the units of its structure; the model also prepares the input of its next layer."""
        if earlier is not None:
            wrong = "a position model with its own attention cannot read earlier segments"
            raise PositionError(f"{wrong}; choose another position model")
        if context.past.caches:
            site = replace(site, cache=context.past.caches[site.layer])
        terms, parts = context.terms(site), []
        site = replace(site, dropout=self.dropout if self.training else 0.0)
        for i, part in enumerate(context.layout.padded(x)):
            masked = terms[i] + Terms(mask=context.layout.mask(i))
            attended, context.prepared[i] = context.position.attend(part, context.prepared[i], site, masked)
            parts.append(attended)
        return context.layout.flat(parts)


_OWN = "the position model has its own attention"
_OF_LAYERS = ("message_activation", "feedforward", "norm", "norm_first", "residual", "dropout")


@dataclass(frozen=True)
class AttentionConfig:
    """The attention of a layer.

    Args:
        dropout: of attention weights, also those of a position model's own attention (``grit``, ...), if it has any:
            the gates of ``lspe`` are none.
        kernel: attention kernel, or auto.
        feature_map: replaces the exponential of scores. ``none``: keep it. ``elu``: elu + 1 (Katharopoulos et al.
            2020). ``random``: 256 fixed random features, FAVOR+ (Choromanski et al. 2021). With either, time and memory
            of attention are linear in the number of units, and position models cannot change scores.
        zero_init: whether the weight of the map of attention's output begins at zero: attention then adds nothing at
            first, just as the residual blocks of Goyal et al. 2017 begin at the identity.

    Raises:
        ConfigError: the probability is out of range, or the feature map is unknown.
    """

    dropout: float = 0.0
    kernel: str = "auto"
    feature_map: Literal["none", "elu", "random"] = "none"
    zero_init: bool = False

    def __post_init__(self) -> None:
        check_shares(self, "attention.", "dropout")
        if self.feature_map not in (known := ("none", "elu", "random")):
            wrong = f"attention.feature_map is {self.feature_map!r}"
            raise ConfigError(f"{wrong}; it must be one of {', '.join(known)}")


@dataclass(frozen=True)
class StackConfig:
    """Sizes and options of a stack of layers.

    Attention and message passing together are the hybrid layer of GPS, attention only is a Transformer, and message
    passing only is a classic graph network. All of them have normalisation, residual connections, dropout and
    feed-forward parts, as tuned baselines do (Luo et al. 2024).

    Args:
        width: d, of the hidden vectors.
        layers: number of layers; 0 predicts from the features alone, as embeddings of knowledge graphs do.
        heads: number of heads of attention.
        attention: options of the attention of each unit to all units of its structure; null for none.
        message_passing: convolution along the edges, a name of ``CONVOLUTIONS`` such as gcn or gine, or the path of one
            of PyTorch Geometric, with options as ``{name: torch_geometric.nn.SAGEConv, aggr: max}``; null for none.
        message_activation: after the convolution: ``relu``, ``gelu``, ``none`` or ``auto``, which is ``none`` where
            attention and the messages of gin or gine, which have a ReLU inside, are each added to the input, as in GPS,
            and ``activation`` everywhere else.
        feedforward: hidden width of the feed-forward parts; 0 for none.
        activation: in the feed-forward parts and after the convolution, but not within convolutions, their updates of
            edges, and virtual nodes, which have ReLUs: ``relu``, max(x, 0); or ``gelu``, x Phi(x) with
            the distribution function Phi of the standard normal distribution, without approximation (Hendrycks and
            Gimpel 2016).
        norm: ``batch``, ``layer`` or ``none``.
        norm_first: whether to normalise the input of each part (pre-norm), as in Transformers for text; otherwise its
            sum with the residual (post-norm), as in GPS. For models with attention only.
        residual: ``true``: each part is added to its input. ``linear``: a linear map of the layer's input is added to
            the messages before the norm (Luo et al. 2024). ``false``: none. With ``linear`` and ``false`` attention, if
            any, is one more term of the sum that is normalised (ours); both need message passing.
        dropout: dropout probability of the output of each part.
        input_dropout: of the input of the first layer.
        virtual_node: whether a node linked to all nodes passes messages between layers (Gilmer et al. 2017).

    Raises:
        ConfigError: a size or probability is out of range, the convolution, an activation or the residual is unknown,
            there is neither attention nor message passing, the layers are only a linear map, the residual does not fit
            the other options, or an option has no effect with the others.
    """

    width: int = 64
    layers: int = 4
    heads: int = 4
    attention: AttentionConfig | None = field(default_factory=AttentionConfig)
    message_passing: Asked | None = "gine"
    message_activation: Literal["auto", "relu", "gelu", "none"] = "auto"
    feedforward: int = 128
    activation: Literal["relu", "gelu"] = "relu"
    norm: Literal["batch", "layer", "none"] = "batch"
    norm_first: bool = False
    residual: bool | Literal["linear"] = True
    dropout: float = 0.0
    input_dropout: float = 0.0
    virtual_node: bool = False

    inert: ClassVar[tuple[Inert, ...]] = (
        Inert(_OF_LAYERS, "layers is 0", lambda c: not c.layers),
        Inert(("heads", "norm_first"), "attention is null", lambda c: c.attention is None),
        Inert(("message_activation",), "message_passing is null", lambda c: c.message_passing is None),
        Inert(("activation",), "no part of the model has one that is not its own", lambda c: not c.activates),
    )

    def __post_init__(self) -> None:
        if self.feedforward < 0:
            raise ConfigError(f"feedforward is {self.feedforward}; give a width, or 0 for no feed-forward parts")
        bounded(self, width=(1, WIDTH), layers=(0, LAYERS), heads=(1, HEADS), feedforward=(0, 4 * WIDTH))
        few_parameters(self.width, self.feedforward, self.layers)
        check_shares(self, "", "dropout", "input_dropout")
        if not self.layers and (self.attention or self.message_passing or self.virtual_node):
            wrong = "layers is 0, so attention, message_passing and virtual_node have no effect"
            raise ConfigError(f"{wrong}; set attention and message_passing to null and virtual_node to false")
        given: object = self.attention
        if not isinstance(given, AttentionConfig | None):
            raise ConfigError(f"attention is {given!r}; give an AttentionConfig, or None for no attention")
        if self.message_passing is not None:
            chosen(self.message_passing)  # raises for an unknown name
        elif not self.attention and self.layers:
            raise ConfigError("a model needs attention, or message_passing, or both; this one has neither")
        self._check_names()
        refuse_inert(self)
        self._check_residual()
        if self._linear:
            without = "neither attention nor message_activation nor feed-forward parts"
            wrong = f"layers of {self.message_passing} with {without} are one linear map"
            raise ConfigError(f"{wrong}; set message_activation to auto, or feedforward to a width above 0")

    def _check_names(self) -> None:
        values = {"activation": ("relu", "gelu"), "message_activation": ("auto", "relu", "gelu", "none")}
        values |= {"norm": ("batch", "layer", "none")}
        for name, known in values.items():
            if getattr(self, name) not in known:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}")
        if self.residual not in (True, False, "linear"):
            raise ConfigError(f"residual is {self.residual!r}; it must be true, false or linear")

    def _check_residual(self) -> None:
        if self.residual is True:
            return
        given = f"residual is {str(self.residual).lower()}"
        if self.message_passing is None:
            wrong = f"{given}, and message_passing is null; without its own residual attention is added to messages"
            raise ConfigError(f"{wrong}: set message_passing, or residual to true")
        if self.attention and self.norm_first:
            wrong = f"{given}, and norm_first is true; the norm of messages and attention comes after their sum"
            raise ConfigError(f"{wrong}: set norm_first to false, or residual to true")

    @property
    def after_messages(self) -> Literal["relu", "gelu", "none"]:
        """The activation after the convolution."""
        if self.message_passing is None:
            return "none"
        if self.message_activation != "auto":
            return self.message_activation
        as_in_gps = self.attention is not None and self.residual is True
        return "none" if as_in_gps and chosen(self.message_passing).rectifies else self.activation

    @property
    def activates(self) -> bool:
        """Whether any part of the model uses ``activation``."""
        return self.layers_activate

    @property
    def layers_activate(self) -> bool:
        """Whether any part of the layers uses ``activation``."""
        after = self.message_activation == "auto" and self.after_messages != "none"
        return bool(self.layers) and (bool(self.feedforward) or after)

    @property
    def _linear(self) -> bool:
        """Whether the layers are linear in their input, except for normalisation."""
        if self.message_passing is None or self.attention or self.feedforward:
            return False
        if self.virtual_node and self.layers > 1:  # those between layers have a rectifier
            return False
        return chosen(self.message_passing).keeps_sums and self.after_messages == "none"

    def beside(self, position: PositionModel) -> StackConfig:
        """The same with defaults for the options that have no effect with this position model's own attention."""
        if self.attention is None:
            return self
        names = {name for rule in self.of_own_attention(position) for name in rule.fields}
        defaults: dict[str, Any] = {
            each.name: each.default for each in fields(AttentionConfig) if f"attention.{each.name}" in names
        }
        heads = StackConfig.heads if "heads" in names else self.heads
        return replace(self, heads=heads, attention=replace(self.attention, **defaults))

    def of_own_attention(self, position: PositionModel) -> list[Inert]:
        """The options without effect if this position model has its own in all layers."""
        if not self.attention or not self.layers or not all(map(position.replaces, range(self.layers))):
            return []
        blocks = [each for each in position.modules() if isinstance(each, Block)]
        rules = [Inert(("attention.kernel",), _OWN)]
        if not any(block.drops for block in blocks):
            rules.append(Inert(("attention.dropout",), "the position model's own attention has no weights to drop"))
        if not any(block.heads for block in blocks):
            rules.append(Inert(("heads",), "the position model's own attention has none"))
        return rules

    @classmethod
    def transformer(cls, dims: Dims, feedforward: int, dropout: float = 0.0, **options: Any) -> StackConfig:
        """The layers of a pre-norm Transformer (Xiong et al. 2020), without message passing.

        Args:
            dims: sizes.
            feedforward: hidden width of the feed-forward parts.
            dropout: of activations, attention weights and the input.
            options: all other options.

        A stack raises an error for options that its position model's own attention does not use; :meth:`beside` resets
        them.
        """
        given: dict[str, Any] = {"width": dims.width, "layers": dims.layers, "heads": dims.heads}
        given |= {"feedforward": feedforward, "norm": "layer", "norm_first": True, "message_passing": None}
        given |= {"attention": AttentionConfig(dropout), "dropout": dropout, "input_dropout": dropout}
        return cls(**given | options)

    @property
    def dims(self) -> Dims:
        """Sizes, for a position model; without attention there is one head."""
        return Dims(self.width, self.heads if self.attention else 1, max(1, self.layers))

    @property
    def reads_edges(self) -> bool:
        """Whether message passing reads vectors of edges."""
        return self.message_passing is not None and chosen(self.message_passing).reads_edges


class Layer(nn.Module):
    """One layer: new vectors of units and of edges.

    With attention, and the norm last (GPS, Rampasek et al. 2022, section 3.2 and their code)::

        y = norm(x + a(messages(x))) + norm(x + attention(x)),  then norm(y + feedforward(y))

    With the norm first, as in Transformers for text (Xiong et al. 2020)::

        n = norm(x),  y = x + a(messages(n)) + attention(n),  then y + feedforward(norm(y))

    Without attention, a classic graph network, and with ``residual: linear`` that of Luo et al. 2024 (their code)::

        y = x + a(norm(messages(x))),  then norm(y + feedforward(y))
        y = a(norm(messages(x) + W x + b)),  then the feed-forward part as above

    With attention and ``residual: linear``, which is ours, attention is one more term of that sum::

        y = a(norm(messages(x) + attention(x) + W x + b)),  then the feed-forward part as above

    With ``residual: false`` the sum is the same without W x + b.

    a is the activation, then dropout; each of the other parts has dropout before it is added to its residual. In GPS
    the activation is a ReLU after GatedGCN and the identity after GINE, whose own map has one; GCN and GraphSAGE, which
    have none, get one here. The sum always has one. With ``reads``, cross-attention is one more part of the same form
    after attention.

    Args:
        config: sizes and options.
        position: the position model.
        reads: whether the layer has cross-attention to an encoder.
        number: of the layer, from 0; the position model may have its own attention in some layers.
    """

    def __init__(self, config: StackConfig, position: PositionModel, reads: bool = False, number: int = 0) -> None:
        super().__init__()
        self.config, self.first = config, config.norm_first and config.attention is not None
        self.attention = _attention(config, position, number)
        self.attention_norm = norm_of(config) if config.attention and config.residual is True else None
        self.messages = None if config.message_passing is None else Messages(config)
        self.messages_norm = None if self.messages is None or self.first else norm_of(config)
        self.activation = activation_of(config.after_messages)
        self.skip = _skip(config, self.messages) if self.messages and config.residual == "linear" else None
        self.cross = (
            Attention(config.dims, "auto", config.attention.dropout if config.attention else 0.0) if reads else None
        )
        self.cross_norm = norm_of(config) if reads else None
        self.feedforward = _feedforward(config)
        self.feedforward_norm = None if self.feedforward is None else norm_of(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, edges: Tensor | None, context: Context, site: Site) -> tuple[Tensor, Tensor | None]:
        """(N, d) and (E, d) to the same.

        Args:
            x: vectors of units.
            edges: vectors of edges, one per message; None if no convolution reads them.
            context: shared by the layers of this pass.
            site: the number of the layer, and whether it is trained.
        """
        y, edges = (self._added if self.config.residual is True else self._summed)(x, edges, context, site)
        if self.cross is not None and self.cross_norm is not None:
            y = self._part(y, lambda rows: self._crossed(rows, context, site), self.cross_norm)
        if self.feedforward is not None and self.feedforward_norm is not None:
            y = self._part(y, self.feedforward, self.feedforward_norm)
        return y, edges

    def _added(self, x: Tensor, edges: Tensor | None, context: Context, site: Site) -> tuple[Tensor, Tensor | None]:
        """Attention and messages, each added to its input."""
        read, y = x, x
        if self.attention is not None and self.attention_norm is not None:
            read, earlier = self._read(x, context, site)
            y = x + self.dropout(self.attention(read, context, site, earlier))
            y = y if self.first else self.attention_norm(y)
        if self.messages is not None:
            passed, edges = self.messages(read, edges, context)
            y = self._with_messages(x, y, passed)
        return y, edges

    def _summed(self, x: Tensor, edges: Tensor | None, context: Context, site: Site) -> tuple[Tensor, Tensor | None]:
        """One sum of messages, attention and the linear residual, normalised."""
        assert self.messages is not None
        assert self.messages_norm is not None
        total, edges = self.messages(x, edges, context)
        if self.skip is not None:
            total = total + self.skip(x)
        if self.attention is not None:
            read, earlier = self._read(x, context, site)
            total = total + self.dropout(self.attention(read, context, site, earlier))
        return self.dropout(self.activation(self.messages_norm(total))), edges

    def _read(self, x: Tensor, context: Context, site: Site) -> tuple[Tensor, Tensor | None]:
        """The input of attention: the units, and those in memory."""
        earlier = context.past.memory[site.layer] if context.past.memory else None
        if not self.first or self.attention_norm is None:
            return x, earlier
        return self.attention_norm(x), None if earlier is None else self.attention_norm(earlier)

    def _with_messages(self, x: Tensor, y: Tensor, passed: Tensor) -> Tensor:
        if self.attention is None:
            assert self.messages_norm is not None
            passed = self.dropout(self.activation(self.messages_norm(passed)))
            return x + passed
        passed = self.dropout(self.activation(passed))
        return y + (passed if self.messages_norm is None else self.messages_norm(x + passed))

    def _crossed(self, y: Tensor, context: Context, site: Site) -> Tensor:
        assert self.cross is not None
        (rows,), past = context.layout.padded(y), context.past
        keys, values = past.source[site.layer]
        of_sources = rows.reshape(len(keys), -1, rows.shape[-1])  # all texts of a source read it together
        return context.layout.flat([self.cross.read(of_sources, keys, values, past.reading).view_as(rows)])

    def _part(self, x: Tensor, part: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        out: Tensor = x + self.dropout(part(norm(x))) if self.first else norm(x + self.dropout(part(x)))
        return out


class Messages(nn.Module):
    """A convolution. Updated vectors of edges are normalised, rectified and added to the old ones.

    Args:
        config: sizes and options, with ``message_passing``.
    """

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        assert config.message_passing is not None
        self.convolution = chosen(config.message_passing).make(config.width)
        self.norm = norm_of(config) if self.convolution.updates_edges else None
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, edges: Tensor | None, context: Context) -> tuple[Tensor, Tensor | None]:
        """The messages to the units (N, d), and the new vectors of edges."""
        assert context.batch is not None
        passed, updated = self.convolution(x, edges, context.batch.adjacency)
        if self.norm is None or edges is None:
            return passed, edges
        return passed, edges + self.dropout(self.norm(updated).relu())


def norm_of(config: StackConfig) -> nn.Module:
    """Batch normalisation, layer normalisation, or the identity."""
    if config.norm == "batch":
        return nn.BatchNorm1d(config.width)
    return nn.LayerNorm(config.width) if config.norm == "layer" else nn.Identity()


def activation_of(name: Literal["relu", "gelu", "none"]) -> nn.Module:
    """An activation by its name in configurations."""
    made: nn.Module = {"relu": nn.ReLU, "gelu": nn.GELU, "none": nn.Identity}[name]()
    return made


def _attention(config: StackConfig, position: PositionModel, number: int) -> nn.Module | None:
    """The layer's attention, that of the position model, or none.

    Raises:
        ConfigError: the position model has its own attention, which has neither a feature map nor this initialisation.
    """
    if (asked := config.attention) is None:
        return None
    if not position.replaces(number):
        feature_map = {"none": None, "elu": elu_plus_one}.get(asked.feature_map)
        if asked.feature_map == "random":
            feature_map = PositiveFeatures(config.dims.head)
        return Attention(config.dims, asked.kernel, asked.dropout, feature_map, asked.zero_init)
    refuse_inert(asked, "attention.", [Inert(("feature_map", "zero_init"), _OWN)])
    return OwnAttention(asked.dropout)


def _skip(config: StackConfig, messages: Messages) -> nn.Module:
    """The linear residual, initialised as large as the largest maps in its sum.

    Those of attention, GCN and GAT have Glorot's initialisation, others PyTorch's. Smaller numbers beside GCN or
    attention, and larger ones beside SAGE, make models worse (measured: ``experiments/LOG.md``).
    """
    skip = nn.Linear(config.width, config.width)
    if config.attention or messages.convolution.glorot:
        nn.init.xavier_uniform_(skip.weight)
        nn.init.zeros_(skip.bias)
    return skip


def _feedforward(config: StackConfig) -> nn.Module | None:
    """Linear, activation, linear; None if its width is 0."""
    if not config.feedforward:
        return None
    width, hidden = config.width, config.feedforward
    activation = activation_of(config.activation)
    return nn.Sequential(nn.Linear(width, hidden), activation, Dropout(config.dropout), nn.Linear(hidden, width))
