"""Speech recognition by CTC. Rows: `audio` (a WAV file, samples, or `input_values`) and `text`/`sentence`/`transcription`, or `labels`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch

from mpdoctor.replay.data_evidence import FaultKind
from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.sounds import padded_sounds, random_sounds, sound
from mpdoctor.replay.live.task import IGNORED, Batch, Fault, Features, Task

_TEXTS = ("text", "sentence", "transcription", "transcript", "target")


def features(preprocessing: Preprocessing, sample: Sample) -> Features:
    """The sound and the tokens of its transcript."""
    return {preprocessing.model.main_input_name: sound(preprocessing, sample), "labels": transcript(preprocessing, sample)}


def transcript(preprocessing: Preprocessing, sample: Sample) -> list[int]:
    """Token numbers of a row's transcript."""
    labels = sample.values.get("labels")
    if isinstance(labels, list) and all(isinstance(v, int) for v in labels):
        return labels
    text = sample.first(*_TEXTS)
    if not isinstance(text, str):
        raise sample.refused(f"no transcript ({', '.join(_TEXTS[:4])} or labels)")
    return list(preprocessing.tokenizer(text)["input_ids"])


def collate(preprocessing: Preprocessing, rows: Sequence[Features]) -> Batch:
    """Padded sounds and transcripts; padding is left out of the loss."""
    name = preprocessing.model.main_input_name
    return padded_sounds(preprocessing, [row[name] for row in rows]) | {"labels": preprocessing.padded(rows, "labels", IGNORED)}


def made_up(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Noise with short transcripts."""
    count = int(getattr(preprocessing.config, "vocab_size", 0) or 2)
    return random_sounds(preprocessing, size, generator) | {"labels": torch.randint(1, count, (size, 6), generator=generator)}


def misfits(preprocessing: Preprocessing, rows: Sequence[Features], batch: Batch) -> Iterator[tuple[int, Fault]]:
    """Transcripts with more tokens than the sound has frames: CTC gives them the probability 0. Equal neighbours need a blank between them.

    Without an attention mask the silence that fills a sound up counts as frames.
    """
    frames_of = getattr(preprocessing.model, "_get_feat_extract_output_lengths", None)
    if frames_of is None or "input_values" not in batch or getattr(preprocessing.config, "ctc_zero_infinity", False):
        return
    longest = batch["input_values"].shape[1]
    for place, row in enumerate(rows):
        labels = row["labels"]
        length = row["input_values"].shape[0] if "attention_mask" in batch else longest
        frames, needed = int(frames_of(torch.tensor(length))), len(labels) + sum(a == b for a, b in pairwise(labels))
        if needed > frames:
            yield place, (FaultKind.TARGET, f"{len(labels)} labels need {needed} frames, and the sound has {frames}")


TASK = Task(
    name="speech recognition (CTC)", heads=("ForCTC",), features=features, collate=collate, made_up=made_up, misfits=misfits, tokens=("labels",)
)
