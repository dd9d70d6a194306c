"""The parts of the terminal report, one file each: `part(report, ink) -> list of blocks`, empty when there is nothing to say.

A part carries its own title. Nothing is told by colour alone, and content reaches the page only through `Ink`.
"""
