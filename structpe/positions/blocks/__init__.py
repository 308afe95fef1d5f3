"""Models with an attention of their own, in place of that of the layer."""
