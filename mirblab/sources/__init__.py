"""sources: raw releases become collections on disk, one module per origin."""
