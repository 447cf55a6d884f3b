"""own: your own tables and LaTeX."""
