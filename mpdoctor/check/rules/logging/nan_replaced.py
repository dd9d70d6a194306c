"""A framework that repairs NaN by itself.

What it looks for
kohya's sd-scripts (latents with NaN become zero) and Ultralytics (the last checkpoint is loaded again, up to three times), in fp16.

Why training breaks
Bad data or an overflow goes on in silence: the model learns from zeros, or the same steps run again.

When it is fine
When the log is watched for the message.

Example
```toml kohya bad
network_module = "networks.lora"
network_dim = 16
train_data_dir = "data"
mixed_precision = "fp16"
```

Instead
```toml kohya good
network_module = "networks.lora"
network_dim = 16
train_data_dir = "data"
mixed_precision = "bf16"
```

How to confirm
Search the log for "NaN found in latents" or "recovering from last.pt".

References
sd-scripts `train_network.py`, ultralytics `engine/trainer.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule

_MESSAGE = {
    "kohya": ("latents with NaN are replaced by zeros", "NaN found in latents"),
    "ultralytics": ("NaN reloads the last checkpoint", "recovering from last.pt"),
}


def _check(run: CheckSubject) -> Iterator[Hit]:
    if run.dialect == "ultralytics" and not run.config.setting("ultralytics.optimizer_auto").known:
        return  # YOLOv5 and YOLOv7 go on without
    if run.dialect in _MESSAGE and run.computes_in == "fp16":
        what, message = _MESSAGE[run.dialect]
        yield Hit(
            message=f"{what}, and training goes on",
            setting=run.config.compute_dtype,
            severity=Severity.INFO,
            identity="nan-replaced",
            remedy=Remedy(text=f'Search the log for "{message}".'),
        )


RULE = Rule(code="CFG603", severity=Severity.INFO, cause="dirty-data", needs=("compute_dtype",), check=_check)
