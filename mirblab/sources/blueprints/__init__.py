"""blueprints: Lean blueprints, informal statements beside formal ones."""
