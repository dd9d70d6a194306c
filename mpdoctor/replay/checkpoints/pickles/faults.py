"""Why a pickle could not be read."""

from __future__ import annotations


class PickleFault(Exception):
    """The pickle is truncated, malformed, or over the budget.

    Attributes:
        truncated: whether it simply ends too early.
        over_budget: whether it asks for more than the budget.
    """

    def __init__(self, text: str, *, truncated: bool = False, over_budget: bool = False) -> None:
        super().__init__(text)
        self.truncated = truncated
        self.over_budget = over_budget
