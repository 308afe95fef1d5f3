"""Sets of graphs with a class each: the collection of TU Dortmund."""
