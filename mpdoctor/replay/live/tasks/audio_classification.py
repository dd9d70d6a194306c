"""A class for a sound. Rows: `audio` (a WAV file, samples, or `input_values`) and `label`."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mpdoctor.replay.live.class_labels import class_faults, label_of, label_tensor, made_up_labels
from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.sounds import padded_sounds, random_sounds, sound
from mpdoctor.replay.live.task import Batch, Features, Task


def fits(preprocessing: Preprocessing) -> bool:
    """Whether the model reads sound."""
    return preprocessing.model.main_input_name in ("input_values", "input_features")


def features(preprocessing: Preprocessing, sample: Sample) -> Features:
    """The sound and its label."""
    return {preprocessing.model.main_input_name: sound(preprocessing, sample), "labels": label_of(preprocessing, sample)}


def collate(preprocessing: Preprocessing, rows: Sequence[Features]) -> Batch:
    """Padded sounds with their labels."""
    sounds = [row[preprocessing.model.main_input_name] for row in rows]
    return padded_sounds(preprocessing, sounds) | {"labels": label_tensor(preprocessing, rows)}


def made_up(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Noise with random labels."""
    return random_sounds(preprocessing, size, generator) | {"labels": made_up_labels(preprocessing, size, generator)}


TASK = Task(
    name="audio classification", heads=("ForSequenceClassification", "ForAudioClassification"), fits=fits,
    features=features, collate=collate, made_up=made_up, faults=class_faults,
)  # fmt: skip
