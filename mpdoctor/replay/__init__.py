"""`mpdoctor replay`: which tensor went bad first, and which single change makes the failure go away?

`checkpoints` reads files without torch, `live` holds all code that imports torch, `detectors` judge
what was recorded.
"""
