"""Detectors over the activations of one forward pass in a wide precision."""
