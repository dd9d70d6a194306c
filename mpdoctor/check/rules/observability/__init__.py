"""What a run logs, hides, and has logged (CFG6)."""
