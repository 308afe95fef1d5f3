"""One graph whose nodes are predicted: citations, and graphs whose neighbours differ."""
