"""The edits that turn an fp16 run into a bf16 one, in the words of its own files."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, rename
from mpdoctor.check.subject import CheckSubject, ConfigFile
from mpdoctor.core.finding import Edit
from mpdoctor.core.training import Setting

_WORDS = {
    "fp16": "bf16", "float16": "bfloat16", "torch.float16": "torch.bfloat16", "16-mixed": "bf16-mixed", "16": "bf16-mixed", "amp_fp16": "amp_bf16",
}  # fmt: skip
_ONE_WORD = ("accelerate", "lightning", "litgpt", "nemo", "llmfoundry", "olmo", "kohya", "speechbrain")
"""Dialects in which one word decides compute dtype and scaler, and nothing else has to follow."""
_TWO_SWITCHES = ("hf_trainer", "llamafactory", "axolotl", "ms_swift")
"""Dialects with the flags `fp16` and `bf16`."""
_KEYS = ("precision", "mixed_precision")


def to_bf16(run: CheckSubject) -> tuple[Edit | None, ...]:
    """Edits for `remedy`: one that is None where it cannot be done safely.

    It can where every named GPU has native bf16 and the run is in fp16 by switches or words that are known, in all of its files; not where
    weights, adapters or quantisation name fp16 of their own.
    """
    config = run.config
    own = (config.param_dtype, config.adapter_dtype, config.quant_compute_dtype, config.grad_accum_dtype, config.save_dtype)
    switches = {file.config.compute_dtype.at for file in run.files}
    tied = any(setting.value == "fp16" and setting.explicit and setting.at not in switches for setting in own)
    native = bool(run.gpus) and run.below(8) is None and len(list(run.nvidia())) == len(run.gpus)
    if tied or not native or config.compute_dtype.value != "fp16":
        return (None,)
    edits = [edit for file in run.files for edit in _of_file(file)]
    return tuple(edits) if edits else (None,)


def _of_file(file: ConfigFile) -> Iterator[Edit | None]:
    compute = file.config.compute_dtype
    if file.dialect == "deepspeed":
        yield from _of_deepspeed(file)
    elif compute.value != "fp16" or not compute.explicit or (compute.at and compute.at.file != file.path):
        return
    elif file.dialect in _ONE_WORD:
        word = _WORDS.get(str(compute.raw)) if compute.at and (compute.at.key or "").rpartition(".")[2] in _KEYS else None
        yield change(compute, word) if word else None
    elif file.dialect in _TWO_SWITCHES:
        yield from _switched(file.config.fp16_requested, file.config.bf16_requested)
    else:
        yield None


def _switched(fp16: Setting[bool], bf16: Setting[bool]) -> Iterator[Edit | None]:
    """fp16 off and bf16 on where both stand; else the one that stands gets the other's name."""
    if not fp16.explicit or fp16.value is not True or fp16.raw not in ("true", "True"):
        yield None
    elif bf16.explicit and bf16.value is False and bf16.raw in ("false", "False"):
        yield change(fp16, str(bf16.raw))
        yield change(bf16, str(fp16.raw))
    elif bf16.written:
        yield None
    else:
        yield rename(fp16, "bf16")


def _of_deepspeed(file: ConfigFile) -> Iterator[Edit | None]:
    """Its two blocks. Where both say `auto` they follow the trainer."""
    fp16, bf16 = file.node("fp16.enabled"), file.node("bf16.enabled")
    if fp16 is None or fp16.value is False:
        return
    if fp16.value == "auto":
        if bf16 is None or bf16.value != "auto":
            yield None
        return
    yield from _switched(file.config.fp16_requested, file.config.bf16_requested) if bf16 is not None else (None,)
