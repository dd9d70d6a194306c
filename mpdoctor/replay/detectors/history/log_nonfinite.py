"""The log shows the break: from one step on every loss or gradient norm is NaN, infinite or a filtered zero.

What it looks for
Rows that are bad to the end of the log: a loss that is NaN or infinite, a loss that is exactly 0.0 after other losses, or gradient norms
that stay non-finite longer than a loss scaler's search explains.

Why training breaks
Once weights are NaN every later loss is NaN. The Hugging Face Trainer hides it: in place of a NaN loss it adds the mean of the losses
since its last log line (`logging_nan_inf_filter`, on by default), which is 0.0 once a whole interval was NaN. The step with
the NaN gradient was taken all the same.

When it is fine
A non-finite gradient norm now and then in an fp16 run with a loss scaler: that step is skipped.

Example
`from step 41 to the end the loss is 0.0 after 3.87: a NaN loss that the Trainer filtered from its log`

Instead
Go back to a checkpoint before that step, set `logging_nan_inf_filter: false`, and replay it.

How to confirm
`mpdoctor replay` on the last checkpoint before the break.

References
transformers: Trainer, logging_nan_inf_filter (PR #13619); huggingface/trl#6702.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, logged


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for the break. A break before the first update rules the learning rate out."""
    assert evidence.history is not None
    history = evidence.history
    facts = history.facts
    if facts.broken_from is None:
        return
    row = next(r for r in history.rows if r.step == facts.broken_from)
    if row.step <= 1 and row.step == history.rows[0].step:
        yield Exclusion(cause="learning-rate", evidence=logged(f"step {row.step}, before any weight was updated, is already bad"))
    what = f"the loss is {row.loss:g}" if row.loss is not None else "the gradient norm is not finite"
    if facts.zero_loss is not None and row.loss == 0:
        last = next((r.loss for r in reversed(history.rows) if r.step < row.step and r.loss), None)
        what = f"the loss is exactly 0.0 after {last:.4g}" if last else "the loss is exactly 0.0"
        what += ": a NaN loss that the Trainer filtered from its log" if facts.filtered else ": most likely a NaN loss that the logger replaced"
    elif row.grad_norm is not None and row.loss is not None and row.grad_norm - row.grad_norm != 0:
        what = f"the gradient norm is {row.grad_norm:g} (loss {row.loss:.4g})"
    text = f"from step {facts.broken_from} to the end of the log {what}"
    details = [logged(text)]
    if facts.last_good is not None:
        details.append(logged(f"the last good row is step {facts.last_good}"))
    if facts.lr_at_break is not None:
        details.append(logged(f"the learning rate at the break is {facts.lr_at_break:.3g}"))
    back = f"a checkpoint at or before step {facts.last_good}" if facts.last_good is not None else "the initial weights"
    remedy = Remedy(text=f"Go back to {back}, and set logging_nan_inf_filter to false so that the log tells the truth.")
    yield Hit(message=text, at=at(history.path, f"step {facts.broken_from}"), evidence=tuple(details), remedy=remedy)


RULE: Rule[CheckpointEvidence] = Rule(code="RUN801", severity=Severity.ERROR, needs=("history",), check=check)
