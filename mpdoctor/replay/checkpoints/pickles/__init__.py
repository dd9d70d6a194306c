"""Reading pickles without unpickling: an interpreter of the opcodes that imports nothing and calls nothing.

`machine` runs the `opcodes` and builds inert records, `records` are those values, `constructors` turns
calls of a few harmless classes (OrderedDict, numpy scalars) into plain values, `imports` says what a
real unpickler would have imported, `tensors` finds tensors in the result, `plain` makes plain values.
"""

from mpdoctor.replay.checkpoints.pickles.faults import PickleFault
from mpdoctor.replay.checkpoints.pickles.imports import Danger, danger_of
from mpdoctor.replay.checkpoints.pickles.machine import Budget, Pickled, read_pickle
from mpdoctor.replay.checkpoints.pickles.plain import plain
from mpdoctor.replay.checkpoints.pickles.records import Global, Persistent, Record

__all__ = ["Budget", "Danger", "Global", "Persistent", "PickleFault", "Pickled", "Record", "danger_of", "plain", "read_pickle"]
