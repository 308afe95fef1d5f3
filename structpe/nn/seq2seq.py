"""An encoder-decoder from structures to texts, with tied embeddings and optional copying of source units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from structpe.attention.attend import KERNELS
from structpe.data.batch import Batch
from structpe.data.features import Categories
from structpe.errors import ConfigError
from structpe.nn.convolutions import Asked, chosen
from structpe.nn.copying import Copy, mix
from structpe.nn.decoder import Decoder, DecoderState, check_causal
from structpe.nn.layer import AttentionConfig, StackConfig
from structpe.nn.stack import Stack
from structpe.plain.options import HEADS, LAYERS, WIDTH, Inert, bounded, check_shares, few_parameters, refuse_inert
from structpe.positions import Dims, PositionModel, Positions
from structpe.positions.build import Config, as_model
from structpe.precision import wide
from structpe.registry import unknown

__all__ = ["EncoderDecoder", "TransformerConfig"]

_NO_TARGET = "this batch has no target texts; collate examples with texts"


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and options of an encoder-decoder. The default is a pre-norm Transformer.

    Args:
        width: d, of the hidden vectors.
        heads: h.
        encoder_layers: layers of the encoder.
        decoder_layers: layers of the decoder.
        feedforward: hidden width of the feed-forward parts.
        activation: in the feed-forward parts and after the convolution, ``relu`` or ``gelu``; see :class:`StackConfig`.
        dropout: probability of dropping activations; also attention weights and inputs if the next two are null.
        attention_dropout: of attention weights; null for ``dropout``.
        input_dropout: of the embedded units; null for ``dropout``.
        message_passing: convolution next to the encoder's attention; see :class:`StackConfig`; null for none.
        message_activation: after the convolution; see :class:`StackConfig`.
        norm: of the encoder, ``layer``, ``batch`` or ``none``; the decoder has layer normalisation.
        norm_first: whether parts normalise their input (pre-norm) or their output (post-norm).
        virtual_node: whether a node linked to all units passes messages between encoder layers.
        feature_map: ``none``, or ``elu`` or ``random`` for linear attention in the encoder; see :class:`StackConfig`.
        copy_units: whether the decoder can copy source units, such as names and other rare words.
        kernel: attention kernel, a name of ``KERNELS``, or auto.

    Raises:
        ConfigError: a size or probability is out of range, or a convolution or kernel is unknown.
    """

    width: int = 256
    heads: int = 4
    encoder_layers: int = 4
    decoder_layers: int = 4
    feedforward: int = 1024
    activation: Literal["relu", "gelu"] = "relu"
    dropout: float = 0.1
    attention_dropout: float | None = None
    input_dropout: float | None = None
    message_passing: Asked | None = None
    message_activation: Literal["auto", "relu", "gelu", "none"] = "auto"
    norm: Literal["batch", "layer", "none"] = "layer"
    norm_first: bool = True
    virtual_node: bool = False
    feature_map: Literal["none", "elu", "random"] = "none"
    copy_units: bool = False
    kernel: str = "auto"

    inert: ClassVar[tuple[Inert, ...]] = (
        Inert(("message_activation",), "message_passing is null", lambda c: c.message_passing is None),
    )

    def __post_init__(self) -> None:
        bounded(self, "model.", width=(1, WIDTH), heads=(1, HEADS), feedforward=(1, 4 * WIDTH))
        bounded(self, "model.", encoder_layers=(1, LAYERS), decoder_layers=(1, LAYERS))
        few_parameters(self.width, self.feedforward, self.encoder_layers + self.decoder_layers)
        check_shares(self, "model.", "dropout", "attention_dropout", "input_dropout")
        if self.message_passing is not None:
            try:
                chosen(self.message_passing)
            except ConfigError as error:
                raise ConfigError(f"model.message_passing: {error}; or null for none") from None
        if self.kernel != "auto" and self.kernel not in KERNELS:
            raise ConfigError(f"model.kernel: {unknown('attention kernel', self.kernel, ['auto', *KERNELS])}")
        refuse_inert(self, "model.")

    def stack(self, side: str) -> StackConfig:
        """The layers of the ``encoder`` or the ``decoder``."""
        encodes = side == "encoder"
        return StackConfig(
            width=self.width,
            layers=self.encoder_layers if encodes else self.decoder_layers,
            heads=self.heads,
            attention=AttentionConfig(
                dropout=self.dropout if self.attention_dropout is None else self.attention_dropout,
                kernel=self.kernel,
                feature_map=self.feature_map if encodes else "none",
            ),
            message_passing=self.message_passing if encodes else None,
            message_activation=self.message_activation if encodes else "auto",
            feedforward=self.feedforward,
            activation=self.activation,
            norm=self.norm if encodes else "layer",
            norm_first=self.norm_first,
            dropout=self.dropout,
            input_dropout=self.dropout if self.input_dropout is None else self.input_dropout,
            virtual_node=self.virtual_node and encodes,
        )

    def dims(self, side: str) -> Dims:
        """Sizes of the ``encoder`` or the ``decoder``, for its position model."""
        return Dims(self.width, self.heads, self.encoder_layers if side == "encoder" else self.decoder_layers)


class EncoderDecoder(nn.Module):
    """p(y_t | y_<t, structure). Source units, target units and output share one embedding.

    Args:
        config: sizes and options.
        vocabulary: number of units.
        encoder_position, decoder_position: built for ``config.dims("encoder")`` and ``config.dims("decoder")``; or
            plain data for :func:`structpe.build`.
        edge_types: number of edge labels, for message passing.

    Raises:
        PositionError: the decoder's position model is not causal.
    """

    def __init__(
        self,
        config: TransformerConfig,
        vocabulary: int,
        encoder_position: PositionModel | Config,
        decoder_position: PositionModel | Config,
        edge_types: int = 1,
    ) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocabulary, config.width)
        nn.init.normal_(self.embedding.weight, std=config.width**-0.5)
        encoder_position = as_model(encoder_position, config.dims("encoder"))
        decoder_position = as_model(decoder_position, config.dims("decoder"))
        check_causal(decoder_position)
        encoder, decoder = config.stack("encoder"), config.stack("decoder")
        if encoder.of_own_attention(encoder_position) and (own := decoder.of_own_attention(decoder_position)):
            names = {"attention.dropout": "attention_dropout", "attention.kernel": "kernel"}
            own = [Inert(tuple(names.get(name, name) for name in rule.fields), rule.why) for rule in own]
            refuse_inert(config, "model.", own)
        self.encoder = Stack(encoder.beside(encoder_position), encoder_position, Categories((edge_types,)))
        self.decoder = Decoder(decoder.beside(decoder_position), decoder_position)
        self.copy = Copy(config.width) if config.copy_units else None

    def encode(self, batch: Batch) -> Float[Tensor, "N d"]:
        """Hidden vectors of the units of the structures."""
        assert batch.x is not None
        hidden: Tensor = self.encoder(self._embed(batch.x), batch)
        return hidden

    def start(self, batch: Batch) -> DecoderState:
        """Encode a batch and create the state for decoding, in the order of the batch."""
        assert batch.x is not None
        layout = batch.one_bucket
        (hidden,) = layout.padded(self.encode(batch))
        state = self.decoder.start(hidden, layout.real(0, hidden.device))
        if self.copy is not None:
            state.copied = self.copy.start(hidden, layout.padded(batch.x)[0])
        return state

    def step(
        self, written: Int[Tensor, "b n"], state: DecoderState, positions: Positions | None = None
    ) -> Float[Tensor, "b n v"]:
        """Log-probabilities of the unit after each of the next n units. Updates the state.

        ``positions`` are those of :meth:`Decoder.forward`, if the units are not a path.
        """
        hidden = self.decoder(self._embed(written), state, positions)
        logits = state.steps.logits(hidden, self.embedding.weight)
        if self.copy is None:
            return torch.log_softmax(wide(logits), dim=-1)
        of_sources = (x.reshape(len(state.present), -1, x.shape[-1]) for x in (hidden, logits))
        mixed: Tensor = self.copy(*of_sources, state.copied, state.present)
        return mixed.view_as(logits)

    def forward(self, batch: Batch) -> Float[Tensor, "b m v"]:
        """Log-probabilities of the next unit of the target texts. The batch must have targets."""
        if batch.target is None:
            raise ConfigError(_NO_TARGET)
        return self.step(batch.target[:, :-1], self.start(batch))

    def loss(self, batch: Batch, padding: int, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Cross entropy with label smoothing, summed over the units of the targets, and their number.

        Per unit ``-(1 - e) log p(y) - e/V sum_v log p(v)`` (Szegedy et al. 2016). With copying, the second
        part uses the distribution of writing, not the mixture, in which a unit that cannot be copied would have an
        unbounded loss. Only logits of real units are computed, not (b, m, v), except by a compiled model.

        Args:
            batch: with target texts.
            padding: id that pads targets.
            smoothing: e.
        """
        if batch.target is None:
            raise ConfigError(_NO_TARGET)
        target = batch.target[:, 1:]
        real = (target != padding).flatten()
        state = self.start(batch)
        hidden = self.decoder(self._embed(batch.target[:, :-1]), state)
        # The number of real units varies between batches, and a compiled graph cannot depend on it.
        which = slice(None) if torch.compiler.is_compiling() else real.nonzero().squeeze(1)
        logits = wide(functional.linear(hidden.flatten(0, 1)[which], self.embedding.weight))
        written = torch.log_softmax(logits, dim=-1)  # the gradient of logsumexp makes more tensors of this size
        chosen = written.gather(-1, target.flatten()[which][:, None]).squeeze(-1)
        if self.copy is not None and state.copied is not None:
            gate, copied = self.copy.likelihood(hidden, state.copied, state.present, target)
            chosen = mix(gate.flatten()[which], chosen, copied.flatten()[which])
        loss = -(1 - smoothing) * chosen
        if smoothing > 0:
            loss = loss - smoothing * written.mean(dim=-1)
        return loss.masked_fill(~real[which], 0.0).sum(), real.sum()

    def _embed(self, units: Tensor) -> Tensor:
        embedded: Tensor = self.embedding(units) * math.sqrt(self.config.width)
        return embedded
