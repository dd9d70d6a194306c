"""Which module runs now: dotted names, kept by global forward hooks."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.nn.modules import module as hooks


class ModuleStack:
    """The stack of modules whose forward is running.

    A module that `model` does not contain (a loss module, a teacher) counts as code outside any module.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._names: dict[int, str] = {}
        for name, module in model.named_modules():
            self._names.setdefault(id(module), name.replace("_orig_mod.", "").removesuffix("_orig_mod"))
        self._stack: list[str | None] = []
        self._handles: list[Any] = []
        self.at_exception: str | None = None
        """Innermost module when an exception first passed through a forward."""

    def current(self) -> str | None:
        """Name of the innermost module (`""` for the root), or None outside any module."""
        return self._stack[-1] if self._stack else None

    def attach(self) -> None:
        """Start following forwards."""
        self._handles = [
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
        ]

    def detach(self) -> None:
        """Stop following forwards."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._stack = [], []

    def _enter(self, module: torch.nn.Module, _args: Any) -> None:
        name = self._names.get(id(module))
        if name is None:
            name = self.current()  # a module made on the fly belongs to the module that made it
        self._stack.append(name)

    def _leave(self, _module: torch.nn.Module, _args: Any, _output: Any) -> None:
        if self.at_exception is None and sys.exc_info()[1] is not None and self._stack:
            self.at_exception = self._stack[-1]
        if self._stack:
            self._stack.pop()
