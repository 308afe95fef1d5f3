"""Learned vectors or scalars of absolute places, and of segments and languages."""
