"""Tasks: what a model is trained to do, with its configuration, training, use and scores."""
