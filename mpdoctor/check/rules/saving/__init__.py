"""Saving, exporting, resuming (CFG7)."""
