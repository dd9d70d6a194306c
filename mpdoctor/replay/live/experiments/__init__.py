"""Experiments, one file each (`EXPnnn`): the same state and the same batches, one thing changed.

Each module exports `EXPERIMENT` and says in its docstring what it changes, what its outcome proves, and when it can mislead.
"""
