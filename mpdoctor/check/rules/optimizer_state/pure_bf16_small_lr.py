"""bf16 weights without master copies, and a small learning rate.

What it looks for
Full training of bf16 weights that the optimizer updates in place, without Kahan summation or stochastic rounding, at a learning rate below
1e-4. Where only the launcher could tell whether masters exist (HF Trainer), it is information.

Why training breaks
bf16 has 8 significant bits: an update smaller than 1/512 to 1/256 of a weight is rounded away. One Adam step is about as large as the
learning rate. Of weights spread like N(0, 0.02), 70 % do not move at 2e-5, 85 % at 1e-5, 98 % at 1e-6; norm weights of 1.0 are frozen below
2e-3. The loss still falls a little, which hides it.

When it is fine
ZeRO and FSDP through Accelerate keep fp32 masters; adapters are fp32; torchao's and anyprecision optimizers round stochastically.

Example
```yaml llamafactory bad
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
finetuning_type: full
template: llama3
cutoff_len: 2048
pure_bf16: true
learning_rate: 1.0e-5
```

Instead
```yaml llamafactory good
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
finetuning_type: full
template: llama3
cutoff_len: 2048
bf16: true
learning_rate: 1.0e-5
```

How to confirm
`mpdoctor replay CHECKPOINT` prints the share of weights with fl(w + step) = w, and EXP303 replays with fp32 masters.

References
Shares computed from the bit layout over 400,000 samples; pytorch/ao#1124, meta-pytorch/torchtune#2254, pytorch/pytorch#120376
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import FULL, CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule

_LOST = ((1e-6, 98), (5e-6, 92), (1e-5, 85), (2e-5, 70), (5e-5, 44), (1e-4, 12))


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if config.param_dtype.value != "bf16" or run.trains_adapters or config.method.value not in FULL or config.compensated.value:
        return
    if not config.lr.value or config.lr.value >= 1e-4 or config.lr.value < 0 or config.lr_is_peak.value is False:
        return
    masters_unknown = not config.master_dtype.known and config.precision_mode.value == "weights_lowp_autocast"
    if config.master_dtype.value != "none" and not masters_unknown:
        return
    # What a framework declares to be bf16 throughout is certain; that autocast runs over 16-bit weights is read from loading code.
    declared = config.precision_mode.value == "pure_lowp"
    share = next(percent for lr, percent in _LOST if config.lr.value <= lr)
    rounding = f"{shown(config.param_dtype)}: bf16 weights updated in place at a learning rate of {config.lr.value:g}"
    yield Hit(
        message=f"{rounding} lose updates: at least {share} % of weights like N(0, 0.02) do not move in a step"
        + ("; unless FSDP or ZeRO keeps fp32 masters" if masters_unknown else ""),
        setting=config.param_dtype,
        severity=Severity.INFO if masters_unknown else Severity.ERROR if config.lr.value < 5e-6 and declared else None,
        confidence=Confidence.LOW if masters_unknown else None if declared else Confidence.MEDIUM,
        remedy=Remedy(
            text="Keep fp32 weights and compute under autocast, use ZeRO or FSDP with fp32 masters, or an optimizer with stochastic rounding."
        ),
    )


RULE = Rule(code="CFG302", severity=Severity.WARNING, cause="low-precision-state", needs=("param_dtype", "method", "lr"), check=_check)
