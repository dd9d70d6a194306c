"""A NaN of the loss or of the gradients is replaced instead of cured.

What it looks for
nan_to_num (or nansum) applied to a loss or to gradients that hold NaN.

Why training breaks
The run looks finite and learns nothing from the steps that are bad.

When it is fine
nan_to_num that meets no NaN, or guards a metric.

How to confirm
The place that makes the NaN is named; the experiments of its own cause confirm it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording


def check(recording: Recording) -> Iterator[Hit]:
    """Where a NaN was replaced."""
    for trace in recording.traces.values():
        if trace.replaced_nan:
            site = trace.replaced_nan[0]
            yield Hit(message=f"{site.op} replaces NaN in the {'loss' if site.phase == 'loss' else 'gradients'} of step {trace.step}", at=site)
            return


RULE = Rule(code="RUN506", severity=Severity.ERROR, cause="training-loop", check=check)
