"""
Random walks halve the error on molecules, and change nothing elsewhere
=======================================================================

Each line compares two rows of a study in ``experiments/benchmarks`` that differ in random walks only: the mean over seeds of the
difference, as a share of the score without them, and its 95 % interval by Student's t. An interval that holds 0 shows no difference.
"""
