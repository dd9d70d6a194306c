"""The advice fits the operation, and where none is known there is none."""

from __future__ import annotations

import pytest

from mpdoctor.core.location import Phase, TensorSite
from mpdoctor.core.report import NonFinite
from mpdoctor.replay.safe_forms import safe_form


def origin(op: str, why: str, mechanism: str = "undefined", hurts: bool = False) -> NonFinite:
    site = TensorSite(step=0, phase=Phase.LOSS, op=op)
    return NonFinite(site=site, kind="nan", dtype="float32", harmful=True, why=why, mechanism=mechanism, hurts_at=site if hurts else None)


@pytest.mark.parametrize(
    ("op", "why", "part"),
    [
        ("SqrtBackward0", "div: 0.1/0 in the derivative of sqrt", "inside the root"),
        ("aten.log", "log at [0, 2]: log(0) is -inf", "log_softmax"),
        ("aten._softmax", "_softmax at [0]: a row of -inf", "unmasked"),
        ("aten._ctc_loss", "_ctc_loss at [0]: no alignment exists", "zero_infinity"),
        ("aten.div", "div at [0]: 0/0", "clamp_min"),
        ("aten.div", "div at [0]: 0/0; the constant 1e-12 that was added before is 0 in this dtype", "an eps that the dtype can hold"),
        ("aten.mul", "mul at [0]: 0 * inf", "torch.where(mask"),
    ],
)
def test_advice_fits_the_operation(op: str, why: str, part: str) -> None:
    remedy = safe_form(origin(op, why))
    assert remedy is not None
    assert part in remedy.text


@pytest.mark.parametrize(
    ("op", "why", "mechanism"),
    [
        ("ABackward", "mul at [0, 0]: 0.00651678 * nan in the derivative of mul", "undefined"),
        ("aten.addmm", "addmm at [0, 0]: inf - inf", "undefined"),
        ("aten.native_layer_norm", "native_layer_norm at [0]: not finite", "undefined"),
        ("aten.exp", "exp at [0]: the exact value 1e+40 exceeds float32's 3.4e+38", "overflow"),
    ],
)
def test_no_advice_where_nothing_particular_is_known(op: str, why: str, mechanism: str) -> None:
    assert safe_form(origin(op, why, mechanism)) is None


def test_a_hidden_branch_is_made_safe_before_the_operation() -> None:
    remedy = safe_form(origin("aten.sqrt", "sqrt at [0]: root of -1", hurts=True))
    assert remedy is not None
    assert "before the operation" in remedy.text
