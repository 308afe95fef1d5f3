"""Molecules: tables of MoleculeNet and your own, ZINC, peptides."""
