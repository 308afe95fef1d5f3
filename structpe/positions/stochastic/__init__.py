"""Stochastic position encoding: relative positions for linear attention, by random features."""
