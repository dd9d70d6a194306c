"""Which device a replay runs on."""

from __future__ import annotations

import torch

from mpdoctor.core.errors import UsageError


def chosen_device(asked: str) -> str:
    """`cuda` or `cpu` for `auto`, `cpu` or `cuda`.

    `auto` is the GPU where there is one. With `cpu`, code that asks for CUDA gets the CPU, GPU or not.

    Raises UsageError for `cuda` on a machine without a GPU that torch can use.
    """
    if asked == "cpu":
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    if asked == "cuda":
        built = "" if torch.version.cuda or torch.version.hip else f" (torch {torch.__version__} is built for the CPU only)"
        raise UsageError(f"--device cuda: torch finds no GPU here{built}", "use --device cpu, which applies CUDA's autocast lists")
    return "cpu"
