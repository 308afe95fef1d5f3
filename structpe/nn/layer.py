"""The layer of all models: attention, message passing or both, cross-attention in a decoder, and feed-forward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from structpe.attention.feature_maps import PositiveFeatures, elu_plus_one
from structpe.dropout import Dropout
from structpe.errors import ConfigError
from structpe.nn.attention import Attention, OwnAttention
from structpe.nn.context import Context
from structpe.nn.convolutions import Asked, chosen
from structpe.plain.bounds import HEADS, LAYERS, WIDTH, bounded, few_parameters
from structpe.plain.inert import Inert, refuse_inert
from structpe.positions import Block, Dims, PositionModel, Site

__all__ = ["Layer", "StackConfig", "activation_of", "norm_of"]

_OF_ATTENTION = ("heads", "norm_first", "attention_dropout", "zero_init_attention", "kernel", "feature_map")
_OWN = "the position model has its own attention"
_OF_LAYERS = ("message_activation", "feedforward", "norm", "residual", "dropout", *_OF_ATTENTION)


@dataclass(frozen=True)
class StackConfig:
    """Sizes and options of a stack of layers.

    Attention and message passing together are the hybrid layer of GPS, attention only is a Transformer, and message
    passing only is a classic graph network. All of them have normalisation, residual connections, dropout and
    feed-forward parts, as tuned baselines do (Luo et al. 2024).

    Args:
        width: d, of the hidden vectors.
        layers: number of layers; 0 predicts from the features alone, as embeddings of knowledge graphs do.
        heads: number of attention heads.
        attention: whether each unit attends to all units of its structure.
        message_passing: convolution along the edges, a name of ``CONVOLUTIONS`` such as gcn or gine, or the path of one
            of PyTorch Geometric, with options as ``{name: torch_geometric.nn.SAGEConv, aggr: max}``; null for none.
        message_activation: after the convolution: ``relu``, ``gelu``, ``none`` or ``auto``. ``auto`` is ``activation``,
            with one exception: a hybrid layer adds none after gin and gine, which have a ReLU inside, unless
            ``residual`` is ``linear`` or ``false``.
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
        attention_dropout: of attention weights, also those of a position model's own attention (``grit``, ...), if it
            has any: the gates of ``lspe`` are none.
        zero_init_attention: whether the weight of the map of attention's output begins at zero: attention then adds
            nothing at first, just as the residual blocks of Goyal et al. 2017 begin at the identity.
        input_dropout: of the input of the first layer.
        virtual_node: whether a node linked to all nodes passes messages between layers (Gilmer et al. 2017).
        kernel: attention kernel, or auto.
        feature_map: replaces the exponential of scores. ``none``: keep it. ``elu``: elu + 1 (Katharopoulos et al.
            2020). ``random``: 256 fixed random features, FAVOR+ (Choromanski et al. 2021). With either, time and memory
            of attention are linear in the number of units, and position models cannot change scores.

    Raises:
        ConfigError: a size or probability is out of range, the convolution, an activation or the residual is unknown,
            there is neither attention nor message passing, the layers are only a linear map, the residual does not fit
            the other options, or an option has no effect with the others.
    """

    width: int = 64
    layers: int = 4
    heads: int = 4
    attention: bool = True
    message_passing: Asked | None = "gine"
    message_activation: Literal["auto", "relu", "gelu", "none"] = "auto"
    feedforward: int = 128
    activation: Literal["relu", "gelu"] = "relu"
    norm: Literal["batch", "layer", "none"] = "batch"
    norm_first: bool = False
    residual: bool | Literal["linear"] = True
    dropout: float = 0.0
    attention_dropout: float = 0.0
    zero_init_attention: bool = False
    input_dropout: float = 0.0
    virtual_node: bool = False
    kernel: str = "auto"
    feature_map: Literal["none", "elu", "random"] = "none"

    inert: ClassVar[tuple[Inert, ...]] = (
        Inert(_OF_LAYERS, "layers is 0", lambda c: not c.layers),
        Inert(_OF_ATTENTION, "attention is false", lambda c: not c.attention),
        Inert(("message_activation",), "message_passing is null", lambda c: c.message_passing is None),
        Inert(("activation",), "no part of the model has one that is not its own", lambda c: not c.activates),
    )

    def __post_init__(self) -> None:
        for name, least in (("width", 1), ("layers", 0), ("heads", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be {least} or more")
        if self.feedforward < 0:
            raise ConfigError(f"feedforward is {self.feedforward}; give a width, or 0 for no feed-forward parts")
        bounded(self, width=WIDTH, heads=HEADS, layers=LAYERS, feedforward=4 * WIDTH)
        few_parameters(self.width, self.feedforward, self.layers)
        for name in ("dropout", "attention_dropout", "input_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 0 or more and below 1")
        if not self.layers and (self.attention or self.message_passing or self.virtual_node):
            wrong = "layers is 0, so attention, message_passing and virtual_node have no effect"
            raise ConfigError(f"{wrong}; set attention and virtual_node to false and message_passing to null")
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
        values |= {"norm": ("batch", "layer", "none"), "feature_map": ("none", "elu", "random")}
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
        separate = self.attention and self.residual is True
        return "none" if separate and chosen(self.message_passing).rectifies else self.activation

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
        unused: dict[str, Any] = {"kernel": "auto", "attention_dropout": 0.0, "heads": StackConfig.heads}
        names = {name for rule in self.of_own_attention(position) for name in rule.fields}
        return replace(self, **{name: unused[name] for name in names})

    def of_own_attention(self, position: PositionModel) -> list[Inert]:
        """The options without effect if this position model has its own attention in all layers."""
        if not self.attention or not self.layers or not all(map(position.replaces, range(self.layers))):
            return []
        blocks = [each for each in position.modules() if isinstance(each, Block)]
        rules = [Inert(("kernel",), _OWN)]
        if not any(block.drops for block in blocks):
            rules.append(Inert(("attention_dropout",), "the position model's own attention has no weights to drop"))
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
        sizes = {"width": dims.width, "layers": dims.layers, "heads": dims.heads, "feedforward": feedforward}
        dropouts = dict.fromkeys(("dropout", "attention_dropout", "input_dropout"), dropout)
        return cls(**{**sizes, **dropouts, "norm": "layer", "norm_first": True, "message_passing": None} | options)

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
        self.config, self.first = config, config.norm_first and config.attention
        self.attention = _attention(config, position, number) if config.attention else None
        self.attention_norm = norm_of(config) if config.attention and config.residual is True else None
        self.messages = None if config.message_passing is None else Messages(config)
        self.messages_norm = None if self.messages is None or self.first else norm_of(config)
        self.activation = activation_of(config.after_messages)
        self.skip = _skip(config, self.messages) if self.messages and config.residual == "linear" else None
        self.cross = Attention(config.dims, "auto", config.attention_dropout) if reads else None
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


def _attention(config: StackConfig, position: PositionModel, number: int) -> nn.Module:
    """The layer's attention, or that of the position model.

    Raises:
        ConfigError: the position model has its own attention, which has neither a feature map nor this initialisation.
    """
    if not position.replaces(number):
        feature_map = {"none": None, "elu": elu_plus_one}.get(config.feature_map)
        if config.feature_map == "random":
            feature_map = PositiveFeatures(config.dims.head)
        return Attention(config.dims, config.kernel, config.attention_dropout, feature_map, config.zero_init_attention)
    refuse_inert(config, also=[Inert(("feature_map", "zero_init_attention"), _OWN)])
    return OwnAttention(config.attention_dropout)


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
