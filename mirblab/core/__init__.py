"""core: errors, paths, files of text, the registry's reader, and the terminal."""
