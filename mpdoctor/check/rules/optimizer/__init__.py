"""The optimizer and its own numbers (CFG305 to CFG323)."""
