"""Points in continuous space, and on the sphere."""
