"""Lightweight convolutions together with attention."""
