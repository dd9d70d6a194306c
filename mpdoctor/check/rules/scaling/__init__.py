"""Loss scaling (CFG2)."""
