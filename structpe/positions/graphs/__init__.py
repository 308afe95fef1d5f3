"""Distances and roles of the nodes of a graph."""
