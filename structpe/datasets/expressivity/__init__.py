"""Graphs that are hard to tell from one another: CSL, EXP, BREC."""
