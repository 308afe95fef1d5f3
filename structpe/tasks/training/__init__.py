"""Training that can be resumed exactly: batches that depend only on the seed, and atomic checkpoints."""
