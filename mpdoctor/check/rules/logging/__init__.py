"""What a run logs, and what it hides (CFG601 to CFG609)."""
