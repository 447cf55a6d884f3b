"""searching: the answers of systems to a text of your own, and pairs of similar statements."""
