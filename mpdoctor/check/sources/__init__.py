"""Text to a tree that knows where everything stands: one file per syntax.

A source's module exports `SOURCE`, found by scanning this folder. It turns text into `Document`s whose
nodes keep line, column and the scalar as written, because frameworks read the same text differently
(`2e-5` is a string to PyYAML). Nothing is executed, no tag is constructed, and every source works in
bounded time and memory on hostile input.
"""
