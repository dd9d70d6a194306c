"""A dispatch mode around one training step that can stand aside while an optimizer works."""

from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode, _pop_mode, _push_mode


class StepMode(TorchDispatchMode):
    """Base of the modes that count a step's ops, so that they count alike.

    Args:
        optimizer_ops: whether the ops of `optimizer.step` come by too. They are more than half of a step's bytes, and needed
            only when the optimizer made the bad value.
    """

    def __init__(self, *, optimizer_ops: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.optimizer_ops = optimizer_ops
        self._aside = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Steps run eagerly (`process_state.eager`): torch's guard against compiling such a class costs more than a look at a tensor."""
        return False

    def optimizer_begins(self) -> None:
        """`optimizer.step` is about to work."""
        if not self.optimizer_ops and _get_current_dispatch_mode() is self:
            _pop_mode()
            self._aside = True

    def optimizer_ends(self) -> None:
        """`optimizer.step` is done, or has raised."""
        if self._aside:
            self._aside = False
            _push_mode(self)

    def __exit__(self, *exc: Any) -> None:
        self.optimizer_ends()  # where it raised, nobody else has said so
        super().__exit__(*exc)  # type: ignore[no-untyped-call]
