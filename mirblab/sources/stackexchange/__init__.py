"""stackexchange: dumps of Stack Exchange."""
