"""Graphs that are hard to distinguish: CSL, EXP, BREC."""
