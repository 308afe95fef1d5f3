"""Positions in a tree: depth, path from the root, steps between two nodes."""
