"""The vocabulary: frozen dataclasses and pure functions that every command shares.

Imports the standard library only and does no I/O. A type belongs here when two of the slices
`gpu`, `check`, `replay`, `report` use it; otherwise it lives in its slice.
"""
