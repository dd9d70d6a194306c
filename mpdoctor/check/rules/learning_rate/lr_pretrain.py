"""A learning rate too high for pretraining a model of this size.

What it looks for
Pretraining with an Adam-like optimizer at more than 6 times (warning) or 15 times (error) what models of the size are trained with.

Why training breaks
The largest stable learning rate falls with width and depth. 6e-4 suits 125 million parameters; 70 billion diverge at a fifth of it, first as
spikes of the loss, then for good.

When it is fine
Muon, SGD, and parametrisations that scale the rate with width (muP).

Example
```yaml llmfoundry bad
max_duration: 4800ba
global_train_batch_size: 256
device_train_microbatch_size: 8
train_loader: {name: text}
model:
  name: mpt_causal_lm
  d_model: 4096
  n_layers: 32
  vocab_size: 50368
optimizer: {name: decoupled_adamw, lr: 1.0e-2}
precision: amp_bf16
```

Instead
```yaml llmfoundry good
max_duration: 4800ba
global_train_batch_size: 256
device_train_microbatch_size: 8
train_loader: {name: text}
model:
  name: mpt_causal_lm
  d_model: 4096
  n_layers: 32
  vocab_size: 50368
optimizer: {name: decoupled_adamw, lr: 1.2e-4}
precision: amp_bf16
```

How to confirm
`mpdoctor replay CHECKPOINT --steps 20` with EXP101 and EXP102; growth of loss and activations from step to step.

References
Pretraining recipes of llm-foundry (125M to 70B), OLMo, Megatron-LM, nanotron, gpt-neox, torchtitan
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule

_USUAL = (
    (125e6, 6e-4), (350e6, 3e-4), (760e6, 2.5e-4), (1e9, 2e-4), (3e9, 1.6e-4), (7e9, 1.2e-4), (13e9, 1e-4), (30e9, 1e-4), (70e9, 8e-5),
)  # fmt: skip


def _check(run: CheckSubject) -> Iterator[Hit]:
    config, limits = run.config, run.thresholds
    lr, size = config.lr, config.n_params.value
    if config.method.value != "pretrain" or not run.adam or config.lr_is_peak.value is False or not run.language or lr.value is None:
        return
    # Unknown size: the smallest model's rate, so that only what is too high for every size is reported.
    usual = next((rate for limit, rate in reversed(_USUAL) if size is not None and size >= limit * 0.8), _USUAL[0][1])
    if lr.value > usual * limits.lr_pretrain_factor:
        yield Hit(
            message=f"{shown(lr)}: {lr.value / usual:.0f} times what models of {_size(size)} are pretrained with ({usual:g})",
            setting=lr,
            severity=Severity.ERROR if lr.value > usual * limits.lr_pretrain_error_factor else None,
            remedy=Remedy(text=f"Start near {usual:g}, with warm-up and clipping at 1.0."),
        )


def _size(parameters: int | None) -> str:
    if parameters is None:
        return "any size"
    return f"{parameters / 1e9:.1f} billion parameters" if parameters >= 1e9 else f"{parameters / 1e6:.0f} million parameters"


RULE = Rule(code="CFG308", severity=Severity.WARNING, cause="learning-rate", needs=("lr", "method", "optimizer_family"), check=_check)
