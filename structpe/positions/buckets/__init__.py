"""Scalars per bucket of offsets: T5 and what is built on it."""
