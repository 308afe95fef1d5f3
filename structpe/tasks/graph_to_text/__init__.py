"""Graph to text: a structure is encoded, a text is written."""
