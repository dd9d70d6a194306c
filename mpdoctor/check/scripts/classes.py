"""The classes of a script: their methods, their bases, and whether they are modules of torch."""

from __future__ import annotations

import ast
from functools import cached_property

from mpdoctor.check.scripts.names import Names
from mpdoctor.check.scripts.scopes import Scope


class Classes(Names):
    """The second layer of `model.Script`."""

    @cached_property
    def own_classes(self) -> dict[str, Scope]:
        """The script's classes by name."""
        return {name: klass for scope in self.scopes for name, klass in scope.classes.items()}

    def method(self, klass: Scope, name: str) -> Scope | None:
        """A method of a class of the script, or of its own base classes."""
        return next((ancestor.functions[name] for ancestor in self.ancestry(klass) if name in ancestor.functions), None)

    def ancestry(self, klass: Scope) -> list[Scope]:
        """A class and those of its bases that stand in the script."""
        found = [klass]
        for ancestor in found:
            assert isinstance(ancestor.node, ast.ClassDef)
            for base in ancestor.node.bases:
                own = self.own_classes.get(base.id) if isinstance(base, ast.Name) else None
                if own is not None and own not in found:
                    found.append(own)
        return found

    def base_names(self, klass: Scope) -> list[str]:
        """Last parts of the names of all base classes that are not the script's own."""
        nodes = [ancestor.node for ancestor in self.ancestry(klass)]
        bases = [base for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases]
        return [(self.qualname(base) or "").rpartition(".")[2] for base in bases]

    def is_module(self, klass: Scope) -> bool:
        """Whether a class is a `torch.nn.Module`."""
        return any(name.endswith(("Module", "PreTrainedModel", "ModelMixin", "Layer", "Model")) for name in self.base_names(klass))

    def enclosing_module(self, scope: Scope) -> Scope | None:
        """The `nn.Module` class that a function belongs to."""
        klass = scope.klass
        return klass if klass is not None and self.is_module(klass) else None
