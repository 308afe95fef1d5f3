"""Vectors or scalars per offset: Shaw, Transformer-XL, DeBERTa, Huang, TENER."""
