"""Masks: which pairs of units attend, by window, direction or edge."""
