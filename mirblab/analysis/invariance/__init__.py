"""invariance: whether a system recognises the same meaning, measured with documents that are rewritten by rules."""
