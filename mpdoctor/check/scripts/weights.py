"""Which optimizer works on which weights, and in which format these are stored."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import precision
from mpdoctor.check.scripts.model import Script, once, within
from mpdoctor.check.scripts.objects import ADAM_FAMILY
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.record import dataclass

_MASTERS = ("deepspeed", "accelerate", "colossalai", "apex", "torch.distributed.fsdp", "megatron", "fairscale", "lightning", "pytorch_lightning")
"""Packages that keep, or can be told to keep, fp32 copies of 16-bit weights outside the script."""
_PARTLY = ("get_peft_model", "LoraConfig", "cast_training_params", "prepare_model_for_kbit_training")
"""Calls after which the trained weights are not the model's own, and are usually fp32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowWeights:
    """An Adam of torch over weights that are stored in 16 bits.

    Attributes:
        optimizer: the call that makes the optimizer.
        cast: where the weights become 16 bits.
        certain: False when only some of them may be, or only on some path.
        dtype: `fp16` or `bf16`.
        lr: learning rate, where it is a number in the script.
        eps: Adam's eps where the script sets it to a number.
        eps_given: whether the script sets it at all.
    """

    optimizer: ast.Call
    cast: precision.WeightCast
    certain: bool
    dtype: str
    lr: float | None
    eps: float | None
    eps_given: bool


@once
def adam_over_low_weights(script: Script) -> list[LowWeights]:
    """All such optimizers. Silent where a framework may keep fp32 master weights, and for adapters on a 16-bit model."""
    if script.imports_from(*_MASTERS) or any(name in script.calls for name in _PARTLY):
        return []
    found = []
    for call, context in script.named(*ADAM_FAMILY):
        name = script.qualname(call.func) or ""
        if not name.startswith(("torch.optim.", "transformers.")):
            continue
        parameters = call.args[0] if call.args else _keyword(call, "params")
        if parameters is None:
            continue
        for owner, there, filtered in _owners(script, parameters, context):
            cast = precision.cast_of(script, owner, there)
            low = cast.dtypes & {"fp16", "bf16"} if cast is not None else frozenset()
            if cast is None or not low:
                continue
            eps = _keyword(call, "eps")
            lr = _keyword(call, "lr") or (call.args[1] if len(call.args) > 1 else None)
            dtype = "fp16" if "fp16" in low else "bf16"
            certain = len(cast.dtypes) == 1 and not filtered
            numbers = {"lr": script.number(lr, context), "eps": script.number(eps, context)}
            found.append(LowWeights(optimizer=call, cast=cast, certain=certain, dtype=dtype, eps_given=eps is not None, **numbers))
            break
    return found


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _owners(script: Script, parameters: ast.expr, context: Context) -> Iterator[tuple[ast.expr, Context, bool]]:
    """The modules whose parameters an optimizer gets, and whether only a selection of them."""
    for value, there in script.values(parameters, context):
        filtered = any(getattr(part, "attr", None) == "requires_grad" for part in within(value, ast.Attribute))
        for call in within(value, ast.Call):
            match call:
                case ast.Call(func=ast.Attribute(value=owner, attr="parameters" | "named_parameters")):
                    yield owner, there, filtered
