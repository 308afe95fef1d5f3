"""Models with their own attention, which replaces that of the layer."""
