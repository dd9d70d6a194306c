"""Whether two pieces of code can run in one pass, judged from the tests in front of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts.scopes import Context, Guard


def exclusive(a: Context, b: Context) -> bool:
    """Whether some test sends one of two places the other way, be it one `if` or the same test written twice."""
    if not a.guards or not b.guards:
        return False
    arms = {guard.statement: guard.arm for guard in a.guards}
    if any(arms.get(guard.statement, guard.arm) != guard.arm for guard in b.guards):
        return True
    facts = {text: holds for guard in a.guards for text, holds in facts_of(guard)}
    return any(facts.get(text, holds) is not holds for guard in b.guards for text, holds in facts_of(guard))


def alternatives(a: Context, b: Context) -> bool:
    """Whether two places are different arms of one statement, i.e. one runs instead of the other."""
    arms = {guard.statement: guard.arm for guard in a.guards}
    return any(arms.get(guard.statement, guard.arm) != guard.arm for guard in b.guards)


def facts_of(guard: Guard) -> Iterator[tuple[str, bool]]:
    """What a guard tells: texts of simple tests, and whether each holds."""
    if guard.test is not None and isinstance(guard.arm, bool):
        yield from _facts(guard.test, guard.arm)


def _facts(test: ast.expr, holds: bool) -> Iterator[tuple[str, bool]]:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _facts(operand, not holds)
        case ast.BoolOp(op=ast.And(), values=parts) if holds:
            for part in parts:
                yield from _facts(part, True)
        case ast.BoolOp(op=ast.Or(), values=parts) if not holds:
            for part in parts:
                yield from _facts(part, False)
        case ast.Compare(left=left, ops=[ast.IsNot() | ast.Is() as op], comparators=[ast.Constant(value=None)]):
            yield ast.dump(left), holds is isinstance(op, ast.IsNot)  # `x is not None` counts as `x`
        case ast.Compare(left=left, ops=[ast.NotEq() | ast.Eq() as op], comparators=[right]):
            yield f"{ast.dump(left)}=={ast.dump(right)}", holds is isinstance(op, ast.Eq)
        case _:
            yield ast.dump(test), holds
