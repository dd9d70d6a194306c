"""SDXL's autoencoder in fp16.

What it looks for
SDXL training in fp16 without `no_half_vae` and without a repaired autoencoder.

Why training breaks
Activations of SDXL's autoencoder pass 65504: latents become NaN, and sd-scripts replaces them by zero with a message, so the model learns grey.

When it is fine
With sdxl-vae-fp16-fix, or in bf16.

Example
```toml kohya bad
pretrained_model_name_or_path = "stabilityai/stable-diffusion-xl-base-1.0"
network_module = "networks.lora"
network_dim = 16
train_data_dir = "data"
mixed_precision = "fp16"
```

Instead
```toml kohya good
pretrained_model_name_or_path = "stabilityai/stable-diffusion-xl-base-1.0"
network_module = "networks.lora"
network_dim = 16
train_data_dir = "data"
mixed_precision = "fp16"
no_half_vae = true
```

How to confirm
"NaN found in latents" in the log.

References
kohya-ss/sd-scripts#952, bmaltais/kohya_ss#1103 and #2674, rohitgandikota/sliders#30
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.bf16_switch import to_bf16
from mpdoctor.check.remedy import remedy
from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    vae = str(config.setting("kohya.vae").value or "").lower()
    if not config.setting("kohya.sdxl").value or run.computes_in != "fp16" or config.setting("kohya.no_half_vae").value or "fix" in vae:
        return
    yield Hit(
        message="SDXL's autoencoder overflows in fp16: latents become NaN",
        setting=config.compute_dtype,
        remedy=remedy("Set `no_half_vae = true`, use sdxl-vae-fp16-fix, or train in bf16.", *to_bf16(run)),
    )


RULE = Rule(code="CFG506", severity=Severity.ERROR, cause="fp16-range", needs=("compute_dtype",), check=_check)
