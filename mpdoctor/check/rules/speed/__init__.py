"""Settings that only cost time (CFG85)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only where sizes, sharding or eager attention are known."""
    config = run.config
    return config.vocab_size.known or config.hidden_size.known or config.attention.value == "eager" or config.distributed.known
