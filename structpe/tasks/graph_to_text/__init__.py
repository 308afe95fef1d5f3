"""Graph to text: models that read a structure and write a text."""
