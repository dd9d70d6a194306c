"""Number formats and the hardware that computes in them (CFG1)."""
