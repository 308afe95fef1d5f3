"""The Open Graph Benchmark (Hu et al. 2020)."""
