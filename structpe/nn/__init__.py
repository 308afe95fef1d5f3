"""Transformers that ask a position model: attention, layers, encoder, decoder, search."""

from typing import TYPE_CHECKING

from structpe.faces import face

if TYPE_CHECKING:
    from structpe.nn.convolutions import CONVOLUTIONS
    from structpe.nn.graph_model import GraphModel, GraphModelConfig
    from structpe.nn.language_model import LanguageModel
    from structpe.nn.layer import AttentionConfig, Layer, StackConfig
    from structpe.nn.search import SearchConfig
    from structpe.nn.seq2seq import EncoderDecoder, TransformerConfig
    from structpe.nn.stack import Stack

__all__ = [
    "CONVOLUTIONS",
    "AttentionConfig",
    "EncoderDecoder",
    "GraphModel",
    "GraphModelConfig",
    "LanguageModel",
    "Layer",
    "SearchConfig",
    "Stack",
    "StackConfig",
    "TransformerConfig",
]

__getattr__, __dir__ = face(
    __name__,
    {
        "AttentionConfig": "layer",
        "CONVOLUTIONS": "convolutions",
        "EncoderDecoder": "seq2seq",
        "GraphModel": "graph_model",
        "GraphModelConfig": "graph_model",
        "LanguageModel": "language_model",
        "Layer": "layer",
        "SearchConfig": "search",
        "Stack": "stack",
        "StackConfig": "layer",
        "TransformerConfig": "seq2seq",
    },
)
