"""Numbers that rules compare with and that are judgement or arithmetic rather than a framework's rule.

Each can be set in `[tool.mpdoctor.thresholds]`.
"""

from __future__ import annotations


class Thresholds:
    """Where a rule begins to speak. Learning rates are peak values for Adam-like optimizers.

    The class holds the defaults; `Thresholds(lr_lora=2e-3)` changes some.
    """

    def __init__(self, **changed: float) -> None:
        for name, value in changed.items():
            if not hasattr(Thresholds, name):
                raise ValueError(f"there is no threshold {name!r}")
            setattr(self, name, value)

    lr_full_large: float = 2e-4
    """Warning, full fine-tuning, 3 billion parameters or more (or size unknown): what a tenth of shipped recipes exceeds."""
    lr_full_small: float = 1e-3
    """Warning, full fine-tuning, fewer parameters."""
    lr_full_error: float = 1e-3
    lr_full_quantised: float = 1e-4
    """Warning, full fine-tuning with moments in 8 bits or fewer."""
    lr_lora: float = 1e-3
    lr_lora_small: float = 2e-3
    """Warning, adapters of models below 3 billion parameters."""
    lr_lora_error: float = 1e-2
    lr_preference_full: float = 5e-5
    lr_preference_lora: float = 5e-4
    lr_preference_error: float = 1e-3
    lr_unknown_method: float = 5e-3
    """Warning where nothing tells what is trained: above every learning rate for Adam in 545 shipped configs but a Muon one."""
    lr_pretrain_factor: float = 6.0
    """Warning at this multiple of what models of the size are pretrained with. Recipes that train well reach 5 (8B at 6e-4)."""
    lr_pretrain_error_factor: float = 15.0
    lr_tiny: float = 1e-8
    lr_tiny_lora: float = 1e-6
    init_scale_high: float = 2.0**24
    init_scale_low: float = 16.0
    window_short: int = 50
    short_run: int = 2000
    """Steps below which a handful of skipped ones matter."""
    hysteresis: int = 8
    eps_large: float = 1e-3
    warmup_share: float = 0.5
    lora_scale: float = 8.0
    clip_high: float = 100.0
    clip_low: float = 1e-3
    ranks_many: int = 64
    ranks_some: int = 16
    accumulation: int = 8
    accumulation_error: int = 64
    tiny_batch: int = 2
    long_sequence: int = 4096
    sparse_logging: int = 500


DEFAULTS = Thresholds()
