"""Getting data sets: downloads, local copies, archives."""
