"""fp16 autocast with a scaler over weights that are fp16 themselves.

What it looks for
fp16 training with a gradient scaler where the trained weights are loaded in fp16.

Why training breaks
GradScaler refuses to unscale fp16 gradients: "Attempting to unscale FP16 gradients". It keeps nobody's fp32 copy; autocast wants fp32 weights.

When it is fine
With DeepSpeed, or FSDP through Accelerate, which keep fp32 copies; with LoRA, whose adapters PEFT makes fp32.

Example
```yaml hf_trainer bad
model_name_or_path: facebook/opt-1.3b
torch_dtype: float16
use_peft: false
fp16: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: facebook/opt-1.3b
torch_dtype: float32
use_peft: false
fp16: true
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
The first optimizer step raises.

References
torch `amp/grad_scaler.py`; bitsandbytes-foundation/bitsandbytes#945, LAION-AI/Open-Assistant#3213, modelscope/ms-swift#4352
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Edit, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Setting


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if config.precision_mode.value != "weights_lowp_autocast" or config.param_dtype.value != "fp16" or run.trains_adapters:
        return
    if run.computes_in == "fp16" and config.scaler.value == "dynamic":
        unsure = "" if config.master_dtype.known else ", unless ZeRO or FSDP keeps fp32 copies"
        yield Hit(
            message=f"{shown(config.param_dtype)} with fp16 autocast: the scaler refuses to unscale fp16 gradients{unsure}",
            setting=config.param_dtype,
            confidence=Confidence.MEDIUM if unsure else None,
            remedy=remedy("Load the weights in fp32; autocast computes in fp16.", _wider(config.param_dtype)),
        )


def _wider(param: Setting[str]) -> Edit | None:
    return change(param, "float32") if param.raw in ("float16", "torch.float16") else None


RULE = Rule(code="CFG112", severity=Severity.ERROR, cause="training-loop", needs=("precision_mode", "param_dtype"), check=_check)
