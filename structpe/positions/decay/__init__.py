"""Attention that decays with distance: ALiBi, KERPLE, DA-Transformer."""
