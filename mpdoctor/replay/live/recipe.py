"""Recipe files: a Python file that builds a run.

`build() -> (model, optimizer)`, `batches() -> iterable`, `loss(model, batch) -> scalar`; optional `step(model, optimizer, batch, scaler)`,
`scheduler(optimizer)`, `after_step(model)`, and `CONFIG = dict(precision=..., scaler=bool, init_scale=..., clip=..., accum=...)`.

A recipe is the user's own code and is executed, in a fresh namespace for every run: state that it keeps in module globals
starts anew each time.
"""

from __future__ import annotations

import re
import sys
import traceback
import types
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.errors import MpdoctorError, UnreadableInput
from mpdoctor.replay.live.process_state import OutOfMemory, is_out_of_memory
from mpdoctor.replay.live.session import LoopSettings, Session

_NEEDED = ("build", "batches", "loss")
_MAX_BATCHES = 10_000
"""An endless loader is cut here; `--steps` gives another limit."""


class RecipeSource:
    """Sessions from a recipe file.

    Args:
        path: the recipe.
        steps: how many batches to take at most.
        state: a checkpoint's (model state dict, optimizer state dict or None), loaded into what build() returns.
        device: `cpu`, where code that asks for CUDA gets the CPU, or `cuda`, where the recipe decides for itself.

    Raises:
        UnreadableInput: the file is missing, no Python, lacks a function, or fails while it builds.
    """

    def __init__(
        self, path: Path, *, steps: int | None = None, state: tuple[dict[str, Any], dict[str, Any] | None] | None = None, device: str = "cpu"
    ) -> None:
        self.path = path
        self.device = device
        self.real_batches = True
        self.micro_batches = 1
        self.name = path.name
        self.notes: list[str] = []
        self.steps = steps
        self.state = state
        self.text = _read(path)
        try:
            self._code = compile(self.text, str(path), "exec")
        except SyntaxError as error:
            raise UnreadableInput(
                f"{path}:{error.lineno}: not valid Python: {error.msg}", "A recipe is a Python file; `mpdoctor recipe` prints a template."
            ) from None
        except ValueError as error:
            raise UnreadableInput(f"{path}: not valid Python: {error}", "A recipe is a Python text file.") from None

    def open(self) -> Session:
        """Execute the recipe in a fresh namespace and build its run."""
        module = self._execute()
        missing = [name for name in _NEEDED if not callable(getattr(module, name, None))]
        if missing:
            raise UnreadableInput(
                f"{self.path}: the recipe does not define {', '.join(f'{name}()' for name in missing)}",
                "A recipe defines build() -> (model, optimizer), batches() -> iterable, loss(model, batch) -> scalar.",
            )
        built = self._call(module.build)
        if not (isinstance(built, tuple) and len(built) == 2 and isinstance(built[0], torch.nn.Module) and _is_optimizer(built[1])):
            kinds = f"({', '.join(type(part).__name__ for part in built)})" if isinstance(built, tuple) else type(built).__name__
            raise UnreadableInput(f"{self.path}: build() must return (model, optimizer), a module and a torch optimizer, not {kinds}", None)
        model, optimizer = built
        if self.state is not None:
            load_state(model, optimizer, self.state, self.path)
        batches = self._batches(self._call(module.batches))
        if not batches:
            raise UnreadableInput(f"{self.path}: batches() yields nothing", "Give at least one batch.")
        scheduler = self._call(module.scheduler, optimizer) if callable(getattr(module, "scheduler", None)) else None
        return Session(
            model=model,
            optimizer=optimizer,
            batches=batches,
            loss=module.loss,
            step=getattr(module, "step", None),
            scheduler=scheduler,
            after_step=getattr(module, "after_step", None),
            settings=settings_from(getattr(module, "CONFIG", {}), self.path),
        )

    def data_evidence(self) -> None:
        """A recipe makes its own batches: the rows behind them are not known."""
        return None

    def activations(self) -> None:
        """A recipe says in which precision it runs: none other is its own."""
        return None

    def line_of_row(self, step: int, row: int) -> str | None:
        """Recipes make their batches themselves: no line to name."""
        return None

    def _execute(self) -> types.ModuleType:
        module = types.ModuleType(f"mpdoctor_recipe_{self.path.stem}_{next(_SERIAL)}")
        module.__file__ = str(self.path)
        # Classes defined in the recipe must be found by their module name (pickle, dataclasses, torch.compile).
        sys.modules[module.__name__] = module
        folder = str(self.path.resolve().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        self._call(exec, self._code, module.__dict__)
        return module

    def _call(self, function: Any, *args: Any, name: str | None = None) -> Any:
        try:
            return function(*args)
        except MpdoctorError:
            raise
        except (Exception, SystemExit) as error:
            if is_out_of_memory(error):
                raise OutOfMemory(error) from error
            lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(self.path)]
            place = f"{self.path}:{lines[-1]}" if lines else str(self.path)
            name = name or getattr(function, "__name__", "the recipe")
            what = "while it was loaded" if function is exec else f"in {name}()"
            raise UnreadableInput(f"{place}: {type(error).__name__} {what}: {error}", "The recipe must run without mpdoctor first.") from error

    def _batches(self, value: Iterable[Any]) -> list[Any]:
        limit = self.steps or _MAX_BATCHES
        found: list[Any] = []

        def take() -> Iterator[Any]:
            for batch in value:
                if len(found) >= limit:
                    return
                yield batch

        return self._call(lambda: [found.append(b) or b for b in take()], name="batches")  # type: ignore[func-returns-value, no-any-return]


_SERIAL = count()


def _is_optimizer(value: Any) -> bool:
    """Torch's own optimizers, and wrappers that show the same parts."""
    return isinstance(value, torch.optim.Optimizer) or all(hasattr(value, name) for name in ("param_groups", "state", "step", "zero_grad"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UnreadableInput(f"{path}: no such file", "Give the path of a recipe (a Python file).") from None
    except IsADirectoryError:
        raise UnreadableInput(f"{path}: is a folder", "Give the path of a recipe (a Python file).") from None
    except UnicodeDecodeError:
        raise UnreadableInput(f"{path}: is not UTF-8 text", "A recipe is a Python text file.") from None
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}", None) from None


def settings_from(config: Any, path: Path) -> LoopSettings:
    """The loop's settings from a recipe's CONFIG."""
    if not isinstance(config, dict):
        raise UnreadableInput(f"{path}: CONFIG must be a dict, not {type(config).__name__}", None)
    scaler: dict[str, Any] | None = None
    if config.get("scaler"):
        scaler = {}
        for key in ("init_scale", "growth_factor", "backoff_factor", "growth_interval"):
            if isinstance(config.get(key), (int, float)):
                scaler[key] = config[key]
    clip = config.get("clip")
    accumulation = config.get("accum", 1)
    precision = str(config.get("precision", ""))
    return LoopSettings(
        precision=precision,
        asked=asked_precision(precision),
        scaler=scaler,
        clip=float(clip) if isinstance(clip, (int, float)) and not isinstance(clip, bool) else None,
        accumulation=accumulation if isinstance(accumulation, int) and accumulation > 0 else 1,
    )


def asked_precision(words: str) -> str | None:
    """`fp16`, `bf16` or `fp32` where the words name exactly one as the precision of the computation.

    `bf16 gradient accumulation` or `fp16 params, fp32 optimizer state` say nothing about the matrix products.
    """
    text = words.lower().strip()
    names = {"fp16": r"fp16|float16|\bhalf\b|\b16-(mixed|true)", "bf16": r"bf16|bfloat16", "fp32": r"fp32|float32"}
    computed = re.search(r"autocast|mixed|\bamp\b|-true", text)
    if computed is None and not any(re.fullmatch(pattern, text) for pattern in names.values()):
        return None
    scope = text[: computed.end()] if computed is not None else text
    found = [name for name, pattern in names.items() if re.search(pattern, scope)]
    return found[0] if len(found) == 1 else None


def load_state(model: torch.nn.Module, optimizer: Any, state: tuple[dict[str, Any], dict[str, Any] | None], path: Path) -> None:
    """Load a checkpoint's state into a built run. Raises UnreadableInput naming the keys that do not fit."""
    weights, moments = state
    own = model.state_dict()
    missing = [k for k in own if k not in weights]
    unexpected = [k for k in weights if k not in own]
    shapes = [k for k in own if k in weights and tuple(own[k].shape) != tuple(weights[k].shape)]
    if shapes or (missing and len(missing) == len(own)):
        parts = []
        if shapes:
            k = shapes[0]
            parts.append(f"{len(shapes)} with another shape (first: {k}, {tuple(weights[k].shape)} in the file, {tuple(own[k].shape)} in the model)")
        if missing:
            parts.append(f"{len(missing)} missing (first: {missing[0]})")
        if unexpected:
            parts.append(f"{len(unexpected)} unexpected (first: {unexpected[0]})")
        raise UnreadableInput(
            f"{path}: the checkpoint does not fit the model that build() returns: " + "; ".join(parts), "Build the model that wrote it."
        )
    model.load_state_dict(weights, strict=False)
    if moments is not None and optimizer is not None:
        try:
            optimizer.load_state_dict(moments)
        except (ValueError, KeyError) as error:
            raise UnreadableInput(f"{path}: the optimizer's state does not fit: {error}", "Build the optimizer that wrote it.") from None
