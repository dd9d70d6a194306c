"""Optimizer, learning rate and schedule (CFG3)."""
