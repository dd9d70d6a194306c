"""Which number formats a run computes in, and how they go together (CFG101 to CFG121)."""
