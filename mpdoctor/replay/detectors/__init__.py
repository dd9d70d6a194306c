"""Detectors, one file each: over a recorded replay (`recording`), a checkpoint (`checkpoint`), a log (`history`). No torch."""
