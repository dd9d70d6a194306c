"""Dialects: what a framework's config means, one file per framework, found by scanning this folder.

A module exports `DIALECT`. `claim` scores how surely a document is of this dialect, `lift` turns it into
the canonical `TrainingConfig`: each precision vocabulary is mapped to the same few fields, each default is
named with the framework version that it holds for, and what the file cannot tell stays unknown.
"""
