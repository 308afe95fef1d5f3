"""Transformers that ask a position model: attention, layers, encoder, decoder, search."""
