"""Detectors over training data: rows that the model cannot take, whichever step reads them."""
