"""A bf16 run exported to fp16.

What it looks for
Saving or exporting in fp16 after training in bf16.

Why training breaks
Weights above 65504 become infinite, those below 6e-8 zero, on the way to the file.

When it is fine
Models whose weights are small, as those of adapters and diffusion models are (information only); check the export for infinities.

Example
```toml kohya bad
network_module = "networks.lora"
network_dim = 16
train_data_dir = "data"
mixed_precision = "bf16"
save_precision = "fp16"
```

Instead
```toml kohya good
network_module = "networks.lora"
network_dim = 16
train_data_dir = "data"
mixed_precision = "bf16"
save_precision = "bf16"
```

How to confirm
`mpdoctor replay EXPORTED` reads the weights.

References
sd-scripts `save_precision`, torchtitan `export_dtype`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    save = run.config.save_dtype
    if save.value == "fp16" and run.computes_in == "bf16":
        yield Hit(
            message=f"{shown(save)} after training in bf16: weights above 65504 become infinite in the file",
            setting=save,
            severity=Severity.INFO if run.trains_adapters or run.config.domain.value == "diffusion" else None,
            remedy=remedy("Save in bf16 or fp32.", *([change(save, "bf16")] if save.raw == "fp16" else [])),
        )


RULE = Rule(code="CFG701", severity=Severity.WARNING, cause="checkpoint", needs=("compute_dtype",), check=_check)
