"""Training that survives: batches that follow from the seed, checkpoints whole or absent, exact resume."""
