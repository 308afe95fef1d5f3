"""From structures to batches: encode, store, collate."""
