"""Tasks: their configurations, training, trained models and scores."""
