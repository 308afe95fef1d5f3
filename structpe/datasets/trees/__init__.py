"""Trees: the Stanford Sentiment Treebank, ListOps."""
