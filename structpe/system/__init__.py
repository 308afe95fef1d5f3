"""The machine: files and their checksums, processes, signals and threads, output to terminals."""
