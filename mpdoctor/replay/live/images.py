"""Images of data rows as arrays: from paths, bytes, or numbers."""

from __future__ import annotations

import base64
import binascii
import io
from typing import Any

import torch

from mpdoctor.core.errors import MissingDependency
from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing

_IMAGES = ("image", "img", "image_path", "image_file", "file_name", "filename", "file", "path")
_SIZE = 224
_MAX_PIXELS = 100_000_000


def pixels(preprocessing: Preprocessing, sample: Sample) -> torch.Tensor:
    """The image of a row as the folder's processor makes it: (channels, height, width).

    Raises UnreadableInput for a row without an image that can be read, MissingDependency without Pillow.
    """
    ready = sample.values.get("pixel_values")
    if ready is not None:
        return sample.array("pixel_values")
    image = _opened(sample)
    processor = preprocessing.image_processor
    if processor is not None:
        try:
            made: torch.Tensor = processor(images=image, return_tensors="pt")["pixel_values"][0]
        except ImportError as error:
            reason = str(error).strip().splitlines()[0]
            raise MissingDependency(f"{sample.place}: the image processor needs a package that is missing: {reason}", "Give pixel_values.") from None
        return made
    channels, height, width = image_shape(preprocessing)
    preprocessing.note("the folder has no preprocessor_config.json: images are resized to the model's size and scaled to -1 to 1")
    resized = image.convert("RGB" if channels == 3 else "L").resize((width, height))
    values = torch.frombuffer(bytearray(resized.tobytes()), dtype=torch.uint8).reshape(height, width, channels)
    return values.permute(2, 0, 1).float() / 127.5 - 1.0


def _opened(sample: Sample) -> Any:
    given = sample.first(*_IMAGES)
    if isinstance(given, dict):  # as datasets write images to parquet
        given = given.get("bytes") or given.get("path")
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        message = f"{sample.place}: reading images needs Pillow, which is not installed"
        raise MissingDependency(message, "pip install pillow, or give pixel_values") from None
    if isinstance(given, str) and given.startswith("data:"):
        try:
            given = base64.b64decode(given.partition(",")[2], validate=True)
        except binascii.Error:
            raise sample.refused("its data: URL is not base64") from None
    if isinstance(given, bytes):
        source: Any = io.BytesIO(given)
    elif isinstance(given, str):
        source = sample.file(given)
    else:
        raise sample.refused(f"no image ({', '.join(_IMAGES[:3])}, ... or pixel_values)")
    try:
        opened = Image.open(source)
        if opened.width * opened.height > _MAX_PIXELS:
            raise sample.refused(f"an image of {opened.width} x {opened.height} pixels")
        return opened.convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        what = given if isinstance(given, str) else "the image"
        raise sample.refused(f"{what} cannot be read: {str(error).splitlines()[0]}") from None


def image_shape(preprocessing: Preprocessing) -> tuple[int, int, int]:
    """(channels, height, width) that the model takes."""
    config = getattr(preprocessing.config, "vision_config", None) or preprocessing.config
    size = getattr(config, "image_size", None) or _SIZE
    if isinstance(size, dict):
        size = (size.get("height", _SIZE), size.get("width", _SIZE))
    height, width = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
    return int(getattr(config, "num_channels", 3) or 3), height, width
