"""How the file is written (CFG9)."""
