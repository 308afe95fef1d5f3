"""Graphormer and its variants: degrees, distances and edges on shortest paths."""
