"""Sound of data rows as arrays: WAV files and bytes by the standard library, or numbers."""

from __future__ import annotations

import io
import wave
from collections.abc import Sequence
from typing import Any

import torch

from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing

_SOUNDS = ("audio", "sound", "audio_path", "file", "path", "wav", "filename", "file_name")
_RATE = 16_000
"""Samples a second, where the folder does not say."""
_SCALES = {1: (torch.uint8, 128.0, 128.0), 2: (torch.int16, 0.0, 32768.0), 4: (torch.int32, 0.0, 2147483648.0)}
"""Bytes per sample of a WAV file -> dtype, zero point, scale."""


def sound(preprocessing: Preprocessing, sample: Sample) -> Any:
    """The sound of a row as the folder's feature extractor makes it: samples (`input_values`) or a spectrogram (`input_features`).

    Raises UnreadableInput for a row without a sound that can be read.
    """
    name = preprocessing.model.main_input_name
    if sample.values.get(name) is not None:
        return sample.array(name)
    samples, rate = _samples(sample)
    extractor = preprocessing.feature_extractor
    wanted = int(getattr(extractor, "sampling_rate", None) or _RATE)
    if rate is not None and rate != wanted:
        preprocessing.note(f"sound of {rate:,} samples a second is brought to {wanted:,} by linear interpolation")
        length = max(1, round(samples.numel() * wanted / rate))
        samples = torch.nn.functional.interpolate(samples.reshape(1, 1, -1), size=length, mode="linear").flatten()
    if extractor is None:
        if name != "input_values":
            raise sample.refused("no preprocessor_config.json beside the model, so sound cannot be made its input", f"Give {name}.")
        return (samples - samples.mean()) / (samples.var(correction=0) + 1e-7).sqrt()
    made = extractor(samples.numpy(), sampling_rate=wanted, return_tensors="pt")
    return made[name][0]


def _samples(sample: Sample) -> tuple[torch.Tensor, int | None]:
    """Samples from -1 to 1, and how many a second where the row says it."""
    given = sample.first(*_SOUNDS)
    rate = sample.values.get("sampling_rate")
    if isinstance(given, dict):  # as datasets write sound to parquet
        rate = given.get("sampling_rate", rate)
        given = given.get("array") if given.get("array") is not None else given.get("bytes") or given.get("path")
    if isinstance(given, list):
        try:
            return torch.tensor(given, dtype=torch.float32).flatten(), int(rate) if rate else None
        except (TypeError, ValueError):
            raise sample.refused("its samples are no numbers") from None
    if isinstance(given, bytes):
        return _wave(io.BytesIO(given), sample, "the sound")
    if isinstance(given, str):
        return _wave(str(sample.file(given)), sample, given)
    raise sample.refused(f"no sound ({', '.join(_SOUNDS[:3])}, ... or input_values)")


def _wave(source: Any, sample: Sample, name: str) -> tuple[torch.Tensor, int]:
    try:
        with wave.open(source, "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError, OSError) as error:
        raise sample.refused(f"{name} cannot be read: {error or type(error).__name__}", "Give WAV files (PCM), or arrays of samples.") from None
    if width not in _SCALES or not data:
        raise sample.refused(f"{name}: {'no samples' if not data else f'{8 * width} bits a sample'}", "Give WAV files of 8, 16 or 32 bits.")
    dtype, zero, scale = _SCALES[width]
    values = torch.frombuffer(bytearray(data[: len(data) // (width * channels) * width * channels]), dtype=dtype).float()
    return ((values - zero) / scale).reshape(-1, channels).mean(1), rate


def padded_sounds(preprocessing: Preprocessing, sounds: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """A batch of sounds, padded with silence to the longest; with a mask where the model was trained with one."""
    name = preprocessing.model.main_input_name
    if len({tuple(s.shape) for s in sounds}) == 1:
        batch = {name: torch.stack([s.float() for s in sounds])}
    else:
        batch = {name: torch.nn.utils.rnn.pad_sequence([s.float() for s in sounds], batch_first=True)}
    extractor = preprocessing.feature_extractor
    # Without an extractor to ask: models that normalise by layer were trained with a mask, those that normalise by group without.
    by_layer = getattr(preprocessing.config, "feat_extract_norm", "") == "layer"
    masked = getattr(extractor, "return_attention_mask", False) if extractor is not None else by_layer
    if masked and name == "input_values":
        ones = [torch.ones(s.shape[0], dtype=torch.long) for s in sounds]
        batch["attention_mask"] = torch.nn.utils.rnn.pad_sequence(ones, batch_first=True)
    return batch


def random_sounds(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Half a second of noise, or a spectrogram of it as long as the model takes."""
    name = preprocessing.model.main_input_name
    if name == "input_values":
        return {name: torch.randn((size, _RATE // 2), generator=generator)}
    config = preprocessing.config
    bins = int(getattr(config, "num_mel_bins", 0) or getattr(config, "input_feat_per_channel", 0) or 80)
    frames = 2 * int(getattr(config, "max_source_positions", 0) or 50)
    return {name: torch.randn((size, bins, min(frames, 3000)), generator=generator)}
