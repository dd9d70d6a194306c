"""Settings that only cost time (CFG85)."""
