"""rewriting: texts and formulas rewritten by rules that keep the meaning, and by rules that change it."""
