"""Speech recognition or translation by an encoder and a decoder (Whisper). Rows: `audio` or `input_features`, and `text`/`sentence`/..."""

from __future__ import annotations

import torch

from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.sounds import random_sounds
from mpdoctor.replay.live.task import Batch, Task
from mpdoctor.replay.live.tasks.speech_ctc import collate, features


def fits(preprocessing: Preprocessing) -> bool:
    """Whether an encoder reads sound."""
    encoder_decoder = bool(getattr(preprocessing.config, "is_encoder_decoder", False))
    return encoder_decoder and preprocessing.model.main_input_name in ("input_features", "input_values")


def made_up(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Noise with random transcripts."""
    count = int(getattr(preprocessing.config, "vocab_size", 0) or 2)
    return random_sounds(preprocessing, size, generator) | {"labels": torch.randint(1, count, (size, 12), generator=generator)}


TASK = Task(
    name="speech to text", heads=("ForConditionalGeneration", "ForSpeechSeq2Seq"), fits=fits, features=features, collate=collate, made_up=made_up
)
