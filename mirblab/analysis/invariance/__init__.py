"""invariance: what a system takes for the same, measured with documents that are rewritten by rules."""
