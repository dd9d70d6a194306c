"""fp8 keys that the launcher does not read.

What it looks for
`amax_history_length`, `amax_compute_algorithm` and `optimization_level` in accelerate's `fp8_config`.

Why training breaks
The interactive set-up writes these names, the launcher reads `amax_history_len`, `amax_compute_algo` and `opt_level`: the defaults apply without
a word.

When it is fine
Never.

Example
```yaml accelerate bad
distributed_type: MULTI_GPU
num_processes: 8
mixed_precision: fp8
fp8_config: {backend: TE, fp8_format: HYBRID, amax_history_length: 16, amax_compute_algorithm: max}
```

Instead
```yaml accelerate good
distributed_type: MULTI_GPU
num_processes: 8
mixed_precision: fp8
fp8_config: {backend: TE, fp8_format: HYBRID, amax_history_len: 16, amax_compute_algo: max}
```

How to confirm
Print the recipe at start-up.

References
accelerate `commands/config/cluster.py` against TERecipeKwargs (read, not run)
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting

_NAMES = {"amax_history_length": "amax_history_len", "amax_compute_algorithm": "amax_compute_algo", "optimization_level": "opt_level"}


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.of("accelerate"):
        for wrong, right in _NAMES.items():
            node = file.node(f"fp8_config.{wrong}")
            if node is not None and node.value is not None:
                yield Hit(
                    message=f"`{wrong}` is not read; the launcher reads `{right}`, so its default applies",
                    setting=Setting(
                        node.value if not isinstance(node.value, (dict, list)) else None, Origin.EXPLICIT, node.span(f"fp8_config.{wrong}"), node.raw
                    ),
                    remedy=Remedy(text=f"Rename it to `{right}`."),
                )


RULE = Rule(code="CFG552", severity=Severity.WARNING, cause="loss-scaling", check=_check)
