"""checks: what is right in each lesson's exercises, one module for each topic."""
