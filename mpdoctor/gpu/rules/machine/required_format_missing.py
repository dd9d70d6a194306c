"""A number format that `--require` asks for is not there.

What it looks for
    A GPU that a run would use and that does not offer the format in the way asked for: `native` unless said otherwise, `emulated`, or
    `tensor-cores`.

Why training breaks
    A job that needs bf16 and lands on a T4 or V100 runs several times slower, fails under torch.compile, or overflows in fp16.

When it is fine
    Never: it was asked for. A device whose formats cannot be told does not pass.

How to confirm
    `mpdoctor gpu` shows what each device computes in.

References
    `mpdoctor explain bf16`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine
from mpdoctor.gpu.recommend import SUPPORT_WORDS, together


def check(machine: Machine) -> Iterator[Hit]:
    """Each requirement against each device that a run would use; the CPU where there is no GPU."""
    devices = together(machine) or (machine.cpu,)
    for requirement in machine.required:
        for gpu in devices:
            if not requirement.met_by(gpu):
                support = gpu.formats.get(requirement.format)
                yield Hit(
                    message=f"{requirement.format} is required ({requirement.level}), and {gpu.ref} has it {SUPPORT_WORDS[support]}",
                    at=gpu.ref,
                    remedy=Remedy(text="Run on another GPU, or drop the requirement."),
                    identity=str(requirement),
                )


RULE: Rule[Machine] = Rule(code="GPU202", severity=Severity.ERROR, check=check)
