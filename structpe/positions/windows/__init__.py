"""Masks: which pairs of units attend at all, by window, direction or edge."""
