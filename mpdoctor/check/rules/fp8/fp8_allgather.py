"""Weights gathered in float8 under FSDP 2.

What it looks for
`enable_fsdp_float8_all_gather` and its kin.

Why training breaks
A report shows another loss curve with it; the gathered weights are rounded once more.

When it is fine
After a comparison of short runs.

Example
```yaml axolotl bad
base_model: meta-llama/Llama-3.2-3B
datasets: [{path: data.jsonl, type: alpaca}]
sequence_len: 2048
micro_batch_size: 8
fp8: true
fp8_enable_fsdp_float8_all_gather: true
torch_compile: true
learning_rate: 0.00002
```

Instead
```yaml axolotl good
base_model: meta-llama/Llama-3.2-3B
datasets: [{path: data.jsonl, type: alpaca}]
sequence_len: 2048
micro_batch_size: 8
fp8: true
torch_compile: true
learning_rate: 0.00002
```

How to confirm
A hundred steps with and without.

References
pytorch/ao#4300
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    gather = run.config.fp8_allgather
    if run.config.fp8.value and gather.value:
        yield Hit(
            message=f"{shown(gather)}: one report shows a different loss curve with it",
            setting=gather,
            confidence=Confidence.LOW,
            remedy=Remedy(text="Compare a short run without it."),
        )


RULE = Rule(code="CFG550", severity=Severity.INFO, cause="low-precision-state", check=_check)
