"""Clipping, accumulation, and the reduction of gradients over ranks (CFG4)."""
