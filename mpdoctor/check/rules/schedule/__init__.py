"""Warm-up and the length of the schedule (CFG311 to CFG313, CFG820)."""
