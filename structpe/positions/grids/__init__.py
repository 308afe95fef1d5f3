"""Images and videos: positions on a grid of patches or pixels."""
