"""Adam's second moment kept in bf16 with a beta2 near one.

What it looks for
Optimizer state in bf16 and 1 - beta2 below 2^-8 (warning) or 2^-9 (error); information where beta2 is only the default.

Why training breaks
v <- beta2 v + (1 - beta2) g^2 changes v by less than its rounding step: at 0.999, v never falls again after a spike, and a true rise to
twice the value is never followed. The steps of those weights stay wrong for good.

When it is fine
beta2 of 0.95 or 0.99; stochastic rounding; fp32 state, which autocast, ZeRO and FSDP keep.

Example
```yaml lightning bad
trainer: {precision: bf16-true, max_steps: 1000}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-3, betas: [0.9, 0.999]}}
```

Instead
```yaml lightning good
trainer: {precision: bf16-true, max_steps: 1000}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-3, betas: [0.9, 0.95]}}
```

How to confirm
`mpdoctor replay CHECKPOINT` compares stored second moments with the gradients' squares.

References
Computed from the bit layout; DeepSpeed `bf16_optimizer_states`, torchtitan `fused_opt_states_bf16`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    beta2, state = config.beta2, config.optimizer_state_dtype
    if state.value != "bf16" or not run.adam or config.compensated.value or beta2.value is None or not 0 < beta2.value < 1:
        return
    rest = 1 - beta2.value
    if rest < 2**-8:
        yield Hit(
            message=f"{shown(beta2)} with bf16 moments: the second moment cannot follow, since {rest:.2g} of it is below bf16's rounding step",
            setting=beta2,
            severity=Severity.ERROR if rest < 2**-9 and beta2.explicit else None,
            related=(state.at,) if state.at else (),
            remedy=Remedy(text="Keep the moments in fp32, or use beta2 0.95."),
        )


RULE = Rule(code="CFG315", severity=Severity.WARNING, cause="low-precision-state", needs=("optimizer_state_dtype", "beta2"), check=_check)
