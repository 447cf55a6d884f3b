"""latex: LaTeX formulas to symbol layout trees."""
