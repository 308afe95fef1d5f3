"""Prediction of properties of graphs and nodes: benchmarks, and studies that compare models on them."""
