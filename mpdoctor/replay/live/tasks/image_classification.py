"""A class for an image. Rows: `image` (a path beside the data file, or bytes) or `pixel_values`, and `label`."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mpdoctor.replay.live.class_labels import class_faults, label_of, label_tensor, made_up_labels
from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.images import image_shape, pixels
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.task import Batch, Features, Task


def features(preprocessing: Preprocessing, sample: Sample) -> Features:
    """The image and its label."""
    return {"pixel_values": pixels(preprocessing, sample), "labels": label_of(preprocessing, sample)}


def collate(preprocessing: Preprocessing, rows: Sequence[Features]) -> Batch:
    """Images of one size with their labels."""
    return {"pixel_values": torch.stack([row["pixel_values"] for row in rows]).float(), "labels": label_tensor(preprocessing, rows)}


def made_up(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Random images and labels."""
    values = torch.randn((size, *image_shape(preprocessing)), generator=generator)
    return {"pixel_values": values, "labels": made_up_labels(preprocessing, size, generator)}


TASK = Task(
    name="image classification", heads=("ForImageClassification", "ForImageClassificationWithTeacher"),
    features=features, collate=collate, made_up=made_up, faults=class_faults,
)  # fmt: skip
