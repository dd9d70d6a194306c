"""Detectors: what a recording shows, one file each (`RUNnnn`). No torch.

Each module exports `RULE`, a rule over `mpdoctor.core.trace.Recording`. It yields a `Hit` for a mechanism that it saw (with the cause
that the mechanism belongs to) and an `Exclusion` for a cause that a fact rules out.
"""
