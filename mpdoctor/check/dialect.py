"""What a dialect has to offer, and which dialect a document is written in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from mpdoctor.check.reader import Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core import rule
from mpdoctor.core.training import TrainingConfig


class Role:
    """The part that a file plays in a run. Files of different roles are judged together."""

    MODEL = "model"
    """Describes the model that is trained (`config.json`)."""
    TRAINER = "trainer"
    """The main config: optimizer, learning rate, precision."""
    LAUNCHER = "launcher"
    """How processes are started (accelerate)."""
    ENGINE = "engine"
    """What runs the step under the trainer (DeepSpeed)."""
    HISTORY = "history"
    """What a run logged and saved."""
    PART = "part"
    """A part of a trainer's settings that may stand several times (quantisation in a script)."""


class Dialect(NamedTuple):
    """A framework's config language.

    Attributes:
        title: the framework, as users call it.
        role: the part that its files play.
        version: framework version that defaults hold for when nothing tells another.
        claim: how surely a document is of this dialect: 0 for no, up to 100 for a conclusive mark.
        lift: reads a document into the canonical config.
        plain_yaml: whether the framework reads YAML with bare PyYAML and does not convert, so that
            `lr: 1e-5` reaches the optimizer as text.
        python: whether its configs are Python modules; the assignments of any other module are a script's.
        split: whether the framework takes several files for one config and merges their keys.
        name: id (`hf_trainer`), from the file name; filled in by `dialects`.
    """

    title: str
    role: str
    version: str
    claim: Callable[[Document], float]
    lift: Callable[[Reader], TrainingConfig]
    plain_yaml: bool = False
    python: bool = False
    split: bool = False
    name: str = ""


class Recognition(NamedTuple):
    """Which dialect a document is; `dialect` None when none claims it. `rival` is a near tie, if any."""

    dialect: Dialect | None
    score: float = 0.0
    rival: Dialect | None = None


@cache
def dialects() -> dict[str, Dialect]:
    """All dialects by name."""
    found = {}
    for module in rule.modules("mpdoctor.check.dialects"):
        name = module.__name__.rpartition(".")[2].strip("_")
        found[name] = module.DIALECT._replace(name=name)
    return found


def recognise(document: Document) -> Recognition:
    """The dialect with the best claim. A rival within 3 points is reported."""
    module = document.syntax == "python" and not document.constructor
    able = (dialect for dialect in dialects().values() if dialect.python or not module)
    claims = sorted(((dialect.claim(document), dialect) for dialect in able), key=lambda c: -c[0])
    if not claims or claims[0][0] <= 0:
        return Recognition(None)
    (best, dialect), *others = claims
    rival = others[0][1] if others and others[0][0] > 0 and best - others[0][0] < 3 else None
    return Recognition(dialect, best, rival)


def count(document: Document, keys: Iterable[str]) -> int:
    """How many of the keys (dotted paths) the document has."""
    top = document.root.mapping
    return sum(1 for key in keys if key in top or ("." in key and document.get(key) is not None))
