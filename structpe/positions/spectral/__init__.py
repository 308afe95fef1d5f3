"""Eigenvectors and eigenvalues of the Laplacian of a graph."""
