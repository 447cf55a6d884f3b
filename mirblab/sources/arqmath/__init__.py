"""arqmath: the collections of ARQMath."""
