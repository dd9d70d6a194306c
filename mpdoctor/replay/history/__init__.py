"""The run's own log: one row per logged step whatever wrote it, and what the rows say.

`readers/` has one file per kind of log, recognised by content; `facts` judges the rows. Imports core
and checkpoints only.
"""

from mpdoctor.replay.history.facts import HistoryFacts, facts_of
from mpdoctor.replay.history.history import History, read_history

__all__ = ["History", "HistoryFacts", "facts_of", "read_history"]
