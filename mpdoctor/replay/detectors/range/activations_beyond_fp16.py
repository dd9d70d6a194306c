"""Activations are larger than fp16 can hold, and the run computes in fp16.

What it looks for
One forward pass of the next batch in the precision of the stored weights (bf16, or fp32). Values of 65520 and more that a matrix product or
convolution reads or writes; with 16-bit weights, of any module.

Why training breaks
Autocast casts what matrix products read to fp16, and their results are fp16: values from 65520 on become infinite, and the loss NaN. Models
that were trained in bf16 (T5, Gemma, many Llamas' first token) have such activations without anyone having noticed.

When it is fine
In bf16 and fp32, which have the range.

Example
`4 modules make values that are infinite in fp16: largest 1.31e+05 in encoder.block.2.layer.1.DenseReluDense.wo (0.4% of its values)`

Instead
Train in bf16 where the GPU has it, else in fp32; or keep the named modules in fp32.

How to confirm
`mpdoctor replay CHECKPOINT --precision fp16`: the origin is an fp16 overflow whose exact value is finite, and the experiment "bf16" removes it.

References
huggingface/transformers#4586, #9295 (T5 in fp16); #36822 (Gemma 3 in fp16).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.activation_range import ActivationRange, ModuleRange
from mpdoctor.replay.checkpoint_evidence import percent


def check(activations: ActivationRange) -> Iterator[Hit]:
    """One hit for all modules, naming the one with the largest value."""
    beyond = activations.beyond
    if not beyond:
        return
    modules = f"{len(beyond)} modules make" if len(beyond) > 1 else "a module makes"
    text = f"{modules} values that are infinite in fp16: largest {_told(beyond[0])}; by one forward pass in {activations.dtype}"
    yield Hit(message=text, evidence=tuple(Evidence(text=_told(m), kind=EvidenceKind.TRACE) for m in beyond[:5]), identity=beyond[0].module)


def _told(module: ModuleRange) -> str:
    return f"{module.amax:.3g} in {module.module} ({percent(module.infinite / module.values)} of its values)"


RULE: Rule[ActivationRange] = Rule(code="RUN124", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="fp16-range", check=check)
