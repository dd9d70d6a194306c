"""Whether code is part of what gradients flow through, as far as its place and its names tell."""

from __future__ import annotations

import re

from mpdoctor.check.scripts import autocast
from mpdoctor.check.scripts.model import Script, once
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.check.scripts.steps import Do, sequences

_LOSS = re.compile(r"loss|criterion|objective|forward|energy|penalty|distance|kernel|normali[sz]e|attention|activation", re.IGNORECASE)
_MEASURES = re.compile(
    r"eval|valid|metric|score|rmse|psnr|accuracy|report|log_|logg|plot|print|summar|test|infer|generat|sampl|preprocess|dataset|augment|collate"
    r"|statistic|stats|init|grad_norm|clip|visuali",
    re.IGNORECASE,
)


def differentiable(script: Script, context: Context) -> bool:
    """Whether gradients plausibly flow through code at this place.

    True in the methods of modules, in functions that are named after losses, and in training code; not
    under `no_grad`, in optimizers, data sets and functions that measure or print.
    """
    if autocast.gradless(script, context):
        return False
    name = context.scope.name.rpartition(".")[2]
    klass = context.scope.klass
    if klass is not None:
        bases = script.base_names(klass)
        if any("Optimizer" in base or "Scheduler" in base or "Dataset" in base or "Callback" in base or "Metric" in base for base in bases):
            return False
        if name in ("__init__", "reset_parameters") or name.startswith("init"):
            return False
    if _LOSS.search(name):
        return True
    if _MEASURES.search(name):
        return False
    return script.enclosing_module(context.scope) is not None or _trains(script)


@once
def _trains(script: Script) -> bool:
    """Whether the script runs backward passes itself."""
    return any(step.do in (Do.BACKWARD, Do.SCALED_BACKWARD, Do.FRAMEWORK_BACKWARD) for sequence in sequences(script) for step in sequence)
