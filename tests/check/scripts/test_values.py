"""Names, values, formats and roles are followed as far as they are certain, and no further."""

from __future__ import annotations

import ast

import pytest

from mpdoctor.check.scripts import autocast
from mpdoctor.check.scripts.dtypes import dtypes, surely
from mpdoctor.check.scripts.guards import exclusive
from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.objects import Role, role
from mpdoctor.check.scripts.source import read_script
from mpdoctor.check.scripts.steps import MAX_STEPS, sequences


def script(text: str) -> Script:
    return Script(read_script("t.py", text))


def asked(text: str) -> tuple[Script, ast.expr, object]:
    """The script, and the argument of its call of `ask` with its context."""
    made = script(text)
    (call,) = made.calls["ask"]
    return made, call.args[0], made.contexts[call]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\nask(torch.exp)", "torch.exp"),
        ("import torch as t\nask(t.nn.functional.softmax)", "torch.nn.functional.softmax"),
        ("import torch.nn.functional as F\nask(F.softmax)", "torch.nn.functional.softmax"),
        ("from torch.cuda import amp\nask(amp.GradScaler)", "torch.cuda.amp.GradScaler"),
        ("from torch.cuda.amp import GradScaler as GS\nask(GS)", "torch.cuda.amp.GradScaler"),
        ("import torch\nac = torch.autocast\nask(ac)", "torch.autocast"),
        ("from torch.cuda.amp import *\nask(autocast)", "torch.cuda.amp.autocast"),
        ("import torch\nx = torch.ones(1)\nask(x.exp)", None),
        ("import torch\ndef f(torch_like):\n    ask(torch_like.exp)", None),
        ("import torch\na = b\nb = a\nask(a)", None),
        ("try:\n    from torch.amp import X\nexcept ImportError:\n    from torch.cuda.amp import X\nask(X)", "torch.cuda.amp.X"),
    ],
)
def test_imported_names_are_resolved(text, name):
    made, node, _ = asked(text)
    assert made.qualname(node) == name


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ask(1e-8)", 1e-8),
        ("ask(-2 ** 15)", -(2.0**15)),
        ("ask(float('-inf'))", float("-inf")),
        ("EPS = 1e-6\ndef f():\n    ask(EPS / 2)", 5e-7),
        ("def f(eps=1e-5):\n    ask(eps)", 1e-5),
        ("def f(eps=1e-5):\n    ask(eps)\nf(eps=1e-3)", 1e-3),
        ("def f(eps=1e-5):\n    ask(eps)\nf(1e-3)\nf(1e-4)", None),
        ("class A:\n    def __init__(self, eps=1e-12):\n        self.eps = eps\n    def f(self):\n        ask(self.eps)", 1e-12),
        ("class B:\n    def __init__(this):\n        this.e = 3\nclass A(B):\n    def f(me):\n        ask(me.e)", 3.0),
        ("class A:\n    eps = 1e-4\n    def f(self):\n        ask(self.eps)", 1e-4),
        ("x = 1\nx = 2\ndef f():\n    ask(x)", None),
        ("x = 1\nx += 1\ndef f():\n    ask(x)", None),
        ("x = 1\nfor x in y:\n    pass\ndef f():\n    ask(x)", None),
        ("n = n + 1\nask(n)", None),
        ("x = 1 if a else 1\nask(x)", 1.0),
        ("x = 1 if a else 2\nask(x)", None),
        ("ask(True)", None),
        ("ask(1 / 0)", None),
        ("ask(10.0 ** 1000)", None),
        ("ask((-8) ** 0.5)", None),
        ("def f():\n    return 7\nask(f())", 7.0),
        ("a, b = 3, 4\nask(b)", 4.0),
        ("ask(y := 5)", 5.0),
    ],
)
def test_numbers_are_followed_while_they_are_certain(text, value):
    made, node, context = asked(text)
    assert made.number(node, context) == value


@pytest.mark.parametrize(
    ("text", "formats"),
    [
        ("import torch\nask(torch.half)", {"fp16"}),
        ("import torch\nD = torch.bfloat16\ndef f():\n    ask(D)", {"bf16"}),
        ("import torch\nask(torch.bfloat16 if a else torch.float16)", {"bf16", "fp16"}),
        ("import torch\nT = {'a': torch.float16, 'b': torch.bfloat16}\nask(T[name])", {"bf16", "fp16"}),
        ("import torch\nask(getattr(torch, 'float16'))", {"fp16"}),
        ("ask('bf16')", {"bf16"}),
        ("def f(dtype):\n    ask(dtype)", set()),
        ("import torch\nask(torch.bfloat16 if a else other)", set()),
        ("import torch\nask(torch.int64)", set()),
    ],
)
def test_formats_of_dtype_expressions(text, formats):
    made, node, context = asked(text)
    assert dtypes(made, node, context) == formats


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x.float()", "fp32"),
        ("x.half().view(2, 2)", "fp16"),
        ("x.to(torch.float32) + y", "fp32"),
        ("x.to(device)", None),
        ("x.to(device, dtype=torch.float64)", "fp64"),
        ("torch.softmax(x, -1, dtype=torch.float32)", "fp32"),
        ("torch.softmax(x, -1)", None),
        ("x.half() + y", None),
        ("x.type_as(y)", None),
        ("x", None),
    ],
)
def test_format_of_a_value_is_only_told_when_it_is_sure(text, name):
    made, node, context = asked(f"import torch\nask({text})")
    assert surely(made, node, context) == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s = torch.amp.GradScaler('cuda')\nask(s)", Role.SCALER),
        ("from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler\ns = ShardedGradScaler()\nask(s)", Role.SCALER),
        ("def f(a, b):\n    a.scale(b).backward()\n    ask(a)", Role.SCALER),
        ("def f(a, o):\n    a.unscale_(o)\n    ask(o)", Role.OPTIMIZER),
        ("def f(a, o):\n    a.unscale_(o)\n    a.step(o)\n    ask(o)", Role.OPTIMIZER),
        ("o = torch.optim.SGD(p, 0.1)\nask(o)", Role.OPTIMIZER),
        ("def f(o: 'torch.optim.Optimizer'):\n    ask(o)", Role.OPTIMIZER),
        ("class T:\n    def __init__(self):\n        self.x = torch.optim.Adam(p)\n    def f(self):\n        ask(self.x)", Role.OPTIMIZER),
        ("def f(x):\n    x.step()\n    x.zero_grad()\n    ask(x)", Role.OPTIMIZER),
        ("s = torch.optim.lr_scheduler.StepLR(o, 3)\nask(s)", Role.SCHEDULER),
        ("def make():\n    return torch.optim.SGD(p, 0.1), torch.amp.GradScaler()\na, b = make()\nask(b)", Role.SCALER),
        ("from accelerate import Accelerator\na = Accelerator()\nask(a)", Role.FRAMEWORK),
        ("def f(env):\n    env.step(1)\n    ask(env)", None),
        ("def f(profiler):\n    profiler.step()\n    ask(profiler)", None),
        ("from sklearn.preprocessing import StandardScaler\nx = StandardScaler()\nask(x)", None),
    ],
)
def test_roles_come_from_construction_use_annotation_and_name(text, expected):
    made, node, context = asked("import torch\n" + text)
    assert role(made, node, context) == expected


@pytest.mark.parametrize(
    ("text", "device", "formats", "enabled", "caches"),
    [
        ("torch.autocast('cuda')", "cuda", {"fp16"}, True, True),
        ("torch.autocast('cuda', torch.bfloat16, False)", "cuda", {"bf16"}, False, True),
        ("torch.autocast('cpu')", "cpu", {"bf16"}, True, True),
        ("torch.autocast(device_type=d, dtype=torch.float16, enabled=a)", None, {"fp16"}, None, True),
        ("torch.cuda.amp.autocast()", "cuda", {"fp16"}, True, True),
        ("torch.cuda.amp.autocast(False)", "cuda", {"fp16"}, False, True),
        ("torch.cuda.amp.autocast(True, torch.bfloat16, False)", "cuda", {"bf16"}, True, False),
        ("torch.amp.autocast('cuda:0', dtype=None)", "cuda", {"fp16"}, True, True),
        ("torch.autocast('cuda', dtype=dtype_of(model))", "cuda", set(), True, True),
        ("torch.autocast('cuda', **settings)", "cuda", set(), None, True),
        ("torch.autocast('cuda' if torch.cuda.is_available() else 'cpu', dtype=torch.float16)", "cuda", {"fp16"}, True, True),
    ],
)
def test_autocast_arguments(text, device, formats, enabled, caches):
    made, node, context = asked(f"import torch\nask({text})")
    found = autocast.read(made, node, context)
    assert (found.device, found.dtypes, found.enabled, found.caches) == (device, formats, enabled, caches)


def test_autocast_or_nothing_is_not_known_to_be_on():
    made, node, context = asked("import torch\nfrom contextlib import nullcontext\nc = torch.autocast('cuda') if a else nullcontext()\nask(c)")
    assert autocast.read(made, node, context).enabled is None


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("if a:\n    one()\nelse:\n    two()", "", True),
        ("if a:\n    one()\nif not a:\n    two()", "", True),
        ("if a is None:\n    one()\nif a:\n    two()", "", True),
        ("if a == 1:\n    one()\nif a != 1:\n    two()", "", True),
        ("if a:\n    one()\nif b:\n    two()", "", False),
        ("if a and b:\n    one()\nif not b:\n    two()", "", True),
        ("if a:\n    one()\nelif b:\n    pass\nelse:\n    two()", "", True),
        ("for _ in x:\n    if a:\n        one()\n        continue\n    two()", "", True),
        ("one() if a else two()", "", True),
        ("match a:\n    case 1:\n        one()\n    case _:\n        two()", "", True),
        ("one()\nif a:\n    two()", "", False),
    ],
)
def test_branches_that_exclude_each_other_are_told_apart(first, second, expected):
    made = script(first + second)
    (one,), (two,) = made.calls["one"], made.calls["two"]
    assert exclusive(made.contexts[one], made.contexts[two]) is expected


def test_functions_that_call_each_other_in_circles_and_fans_end():
    names = [f"f{i}" for i in range(30)]
    body = "".join(f"def {name}(o):\n" + "".join(f"    {other}(o)\n" for other in names) + "    o.step()\n    o.zero_grad()\n" for name in names)
    found = sequences(script(body))
    assert found and all(len(sequence) <= MAX_STEPS for sequence in found)


def test_steps_follow_calls_and_keep_their_order():
    text = """
def train(model, opt, loader):
    for x in loader:
        clear(opt)
        once(model, x).backward()
        opt.step()
def clear(o):
    o.zero_grad()
def once(m, x):
    return m(x)
"""
    (sequence,) = sequences(script(text))
    assert [step.subject for step in sequence] == ["opt", sequence[1].subject, "opt"]
    assert [step.do.value for step in sequence] == ["zero-grad", "backward", "optimizer-step"]
    assert all(len(step.context.loops) == 1 for step in sequence)
