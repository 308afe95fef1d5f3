"""Fetching of data sets: downloads, local copies, archives."""
