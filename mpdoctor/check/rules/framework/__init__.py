"""What a framework makes of its own settings (CFG807 to CFG819)."""
