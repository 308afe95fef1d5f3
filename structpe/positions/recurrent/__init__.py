"""A recurrent network that reads the units in order."""
