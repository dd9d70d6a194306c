"""Single layers in low precision: softmax, loss, buffers, router (CFG116 to CFG121)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only where a framework has switches for them."""
    config = run.config
    return config.softmax_fp32.known or config.logit_dtype.known or config.buffer_dtype.known or bool(config.setting("megatron.experts").value)
