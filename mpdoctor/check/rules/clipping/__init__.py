"""Gradient clipping (CFG401 to CFG408; clipping before unscaling, CFG402, is found in scripts)."""
