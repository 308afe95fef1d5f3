"""The labels on the path between two nodes (Zhu et al. 2019; Cai and Lam 2020)."""
