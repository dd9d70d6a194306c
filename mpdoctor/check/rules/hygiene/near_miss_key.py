"""A key that is almost one that matters.

What it looks for
A key with one slip of the keyboard (two letters swapped, one missing, one too many, one wrong) against a well-known numeric or precision key
(`max_grad_nrom`, `learning_rates`), where the right one is not set.

Why training breaks
Frameworks that take any key ignore it, and the default applies without a word.

When it is fine
Keys of your own script that happen to look alike.

Example
```yaml hf_trainer bad
learning_rate: 2.0e-5
output_dir: out
bf16: true
max_grad_nrom: 0.5
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
bf16: true
max_grad_norm: 0.5
```

How to confirm
Print the arguments that the trainer sees.

References
Follows from how YAML readers fill namespaces.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, ConfigFile
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting

_KNOWN = (
    "learning_rate", "weight_decay", "max_grad_norm", "adam_epsilon", "warmup_steps", "warmup_ratio", "lr_scheduler_type",
    "gradient_accumulation_steps", "per_device_train_batch_size", "num_train_epochs", "gradient_checkpointing", "mixed_precision",
    "gradient_clip_val", "accumulate_grad_batches", "micro_batch_size", "initial_scale_power", "loss_scale_window", "gradient_clipping",
    "attn_implementation", "load_in_4bit", "torch_dtype", "precision",
)  # fmt: skip
_CLASSES = frozenset(("target", "_target_", "class_path", "_component_"))
_OTHER_KEYS = frozenset(("load_in_8bit", "micro_batch_sizes", "weight_decays", "precisions"))


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.files:
        if file.role not in ("trainer", "engine", "launcher") or file.document.syntax not in ("yaml", "json", "toml"):
            continue
        for key, node in file.document.root.walk():
            name = key.rpartition(".")[2]
            if len(name) < 8 or name in _KNOWN or name in _OTHER_KEYS or not isinstance(node.value, (int, float, str)):
                continue
            near = next((known for known in _KNOWN if _slip(name, known)), None)
            if near is None or _goes_to_own_code(file, key):
                continue
            beside = f"{key.rpartition('.')[0]}.{near}".lstrip(".")
            if file.node(near) is not None or file.node(beside) is not None:
                continue
            yield Hit(
                message=f"`{name}` looks like `{near}`, and is nothing that the framework reads",
                setting=Setting(node.value, Origin.EXPLICIT, node.span(key), node.raw),
                confidence=Confidence.MEDIUM,
                remedy=Remedy(text=f"Write `{near}` if that is meant."),
            )


def _goes_to_own_code(file: ConfigFile, key: str) -> bool:
    """Whether a key is an argument of a class that the config names: such a class may call its arguments as it likes."""
    parts = key.split(".")[:-1]
    around = [file.node(".".join(parts[: depth + 1])) for depth in range(len(parts))]
    return "arg_mappings" in parts or any(node is not None and not _CLASSES.isdisjoint(node.mapping) for node in around)


def _slip(written: str, meant: str) -> bool:
    """Whether one slip turns one name into the other: a swap of neighbours, a letter more, less, or other (not a digit)."""
    if written[0] != meant[0] or abs(len(written) - len(meant)) > 1:
        return False
    if len(written) == len(meant):
        wrong = [index for index, (one, other) in enumerate(zip(written, meant, strict=True)) if one != other]
        if len(wrong) == 1:
            return written[wrong[0]].isalpha() and meant[wrong[0]].isalpha()
        return len(wrong) == 2 and wrong[1] == wrong[0] + 1 and written[wrong[0]] == meant[wrong[1]] and written[wrong[1]] == meant[wrong[0]]
    longer, shorter = (written, meant) if len(written) > len(meant) else (meant, written)
    return any(longer[:index] + longer[index + 1 :] == shorter for index in range(len(longer)))


RULE = Rule(code="CFG904", severity=Severity.WARNING, check=_check)
