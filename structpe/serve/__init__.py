"""A server of a trained run: items of many requests in one batch, limits, errors that say what to do, metrics."""
