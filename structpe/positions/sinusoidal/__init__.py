"""Sinusoids of places at the input, of each layer or of the first."""
