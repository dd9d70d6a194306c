"""fp16 training on a GPU that has bf16.

What it looks for
fp16 compute on an NVIDIA GPU of compute capability 8.0 or later. A warning for transformers, information for convolutional networks and
diffusion, which train well in fp16. Without `--gpu` it only says on which cards bf16 would be there.

Why training breaks
fp16 ends at 65504 and loses gradients below 6e-8, so it needs a loss scale, skips steps while the scale adapts, and overflows in models
whose activations are large (anything pretrained in bf16, T5, Gemma). bf16 has fp32's range in the same 16 bits at the same speed and needs
no scaling; it pays with three bits of precision, which master weights in fp32 make good.

When it is fine
Convolutional networks, diffusion and speech models of ordinary size; results that must be comparable with an older fp16 run.

Example
```yaml hf_trainer bad gpu=a100
model_name_or_path: meta-llama/Llama-3.1-8B
fp16: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good gpu=a100
model_name_or_path: meta-llama/Llama-3.1-8B
bf16: true
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT --precision bf16`: a failure that is gone in bf16 was a matter of range.

References
stas00/ml-engineering, training/dtype.md; the docstring of `bf16` in transformers' TrainingArguments
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.bf16_switch import to_bf16
from mpdoctor.check.remedy import remedy
from mpdoctor.check.subject import CheckSubject, capability, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    compute = run.config.compute_dtype
    if compute.value != "fp16":
        return
    if not run.gpus and compute.explicit:
        yield Hit(
            message=f"{shown(compute)}: on GPUs from Ampere on (compute capability 8.0) bf16 has fp32's range, is as fast and needs no loss scaling",
            setting=compute,
            severity=Severity.INFO,
            remedy=Remedy(text="Name the card with --gpu to have this judged."),
        )
    if gpu := run.at_least(8):
        gentle = run.config.domain.value in ("vision", "diffusion", "speech")
        yield Hit(
            message=f"{shown(compute)}: {capability(gpu)} has bf16, whose range is fp32's; fp16 ends at 65504, needs loss scaling and skips steps",
            setting=compute,
            severity=Severity.INFO if gentle else None,
            remedy=Remedy(text="Train in bf16.") if gentle else remedy("Train in bf16.", *to_bf16(run)),
        )


RULE = Rule(code="CFG102", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="fp16-range", needs=("compute_dtype",), check=_check)
