"""Random walks and diffusion on a graph."""
