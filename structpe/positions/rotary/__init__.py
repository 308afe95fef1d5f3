"""Rotary positions: queries and keys are turned by angles, with every scaling to longer texts."""
