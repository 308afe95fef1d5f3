"""Readers of untrusted files that run nothing in them: arrays, lists of numbers, pickles."""
