"""app: the command line, batches of notebooks, the doctor and the explorer."""
