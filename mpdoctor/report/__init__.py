"""Report -> text, JSON and other formats. Imports `core` only. One format is one file under `formats`."""
