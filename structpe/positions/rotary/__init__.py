"""Rotary positions: queries and keys are rotated by angles, with the scalings to longer texts."""
