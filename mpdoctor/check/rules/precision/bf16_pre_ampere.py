"""bf16 on a GPU that only emulates it.

What it looks for
bf16 compute on an NVIDIA GPU below compute capability 8.0 (Volta, Turing, Pascal). Without `--gpu` it only says on which cards it would matter.

Why training breaks
These GPUs have no bf16 arithmetic. Every operation is widened to fp32, computed there and rounded back: slower than plain fp32, without
tensor cores, and some kernels (cuDNN convolutions, flash attention) do not exist. `torch.cuda.is_bf16_supported()` says True all the same,
because it counts emulation, so frameworks that ask it start training without a word.

When it is fine
A short check on an old card of a run that is meant for a newer one.

Example
```yaml hf_trainer bad gpu=v100
model_name_or_path: meta-llama/Llama-3.1-8B
bf16: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good gpu=v100
model_name_or_path: meta-llama/Llama-3.1-8B
fp16: true
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
`mpdoctor gpu` shows what the card computes natively; a profile shows the cast kernels around every matrix product.

References
pytorch/pytorch#148322, pytorch/pytorch#124996, huggingface/diffusers#14129
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, capability, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    compute = run.config.compute_dtype
    if compute.value != "bf16":
        return
    if not run.gpus and compute.explicit:
        yield Hit(
            message=f"{shown(compute)}: on GPUs below compute capability 8.0 (V100, T4, RTX 20, GTX) bf16 is only emulated, slower than fp32",
            setting=compute,
            severity=Severity.INFO,
            remedy=Remedy(text="Name the card with --gpu to have this judged."),
        )
    if gpu := run.below(8):
        convolutions = run.config.domain.value in ("vision", "diffusion", "speech") or run.dialect == "axolotl"
        yield Hit(
            message=f"{shown(compute)}: {capability(gpu)} has no bf16 arithmetic and emulates it through fp32, slower than fp32 itself",
            setting=compute,
            severity=Severity.ERROR if convolutions else None,
            remedy=Remedy(text="Train in fp16 with dynamic loss scaling, or in fp32 where the model is known to leave fp16's range."),
        )


RULE = Rule(code="CFG101", severity=Severity.WARNING, cause="slow-precision", needs=("compute_dtype",), check=_check)
