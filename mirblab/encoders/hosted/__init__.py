"""hosted: encoders behind an API, with their limits, budgets and keys."""
