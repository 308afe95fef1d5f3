"""Files of data sets, read without running anything in them: arrays, lists of numbers, pickles."""
