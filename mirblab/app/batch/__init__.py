"""batch: suites of notebooks executed in parallel, and the runs that they need."""
