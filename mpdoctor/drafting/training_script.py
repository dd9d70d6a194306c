"""What a training script builds and computes, read by `ast`; the script is never executed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from mpdoctor.core.errors import UnreadableInput


@dataclass(slots=True)
class TrainingScript:
    """What was found in a script. Source texts come with the line that they stand in."""

    path: Path
    tree: ast.Module
    text: str
    model: ast.Assign | None = None
    optimizer: ast.Assign | None = None
    loop: ast.For | None = None
    loss_name: str | None = None
    lightning: ast.ClassDef | None = None
    """The LightningModule, which computes its loss and makes its optimizer itself."""
    hf_trainer: bool = False
    """Whether transformers' Trainer (or one of its kind) runs the loop: then the checkpoint replays without a recipe."""
    config: dict[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> TrainingScript:
        """Read and search a script."""
        try:
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except OSError as error:
            raise UnreadableInput(f"{path}: {error.strerror or error}", "give the path of your training script") from None
        except UnicodeDecodeError:
            raise UnreadableInput(f"{path}: is not UTF-8 text", "give the path of your training script (a Python file)") from None
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            raise UnreadableInput(
                f"{path}{line}: not valid Python: {getattr(error, 'msg', error)}", "`mpdoctor recipe` without a script prints a template"
            ) from None
        found = cls(path=path, tree=tree, text=text)
        found._search()
        return found

    def source(self, node: ast.AST) -> str:
        """The text of a node as it stands in the script."""
        return ast.get_source_segment(self.text, node) or ast.unparse(node)

    def _search(self) -> None:
        assigned: dict[str, ast.Assign] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call):
                owner = _owner_of_parameters(node.value)
                if owner and self.optimizer is None:
                    self.optimizer, model_name = node, owner
                    self.model = assigned.get(model_name)
                assigned.setdefault(node.targets[0].id, node)
        if self.optimizer and self.model is None:
            self.model = assigned.get(_owner_of_parameters(self.optimizer.value) or "")
        for loop in (node for node in ast.walk(self.tree) if isinstance(node, ast.For)):
            name = next((name for node in ast.walk(loop) if (name := _backward_of(node))), None)
            if name:  # the innermost loop is the last that ast.walk meets
                self.loop, self.loss_name = loop, name
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef) and {"training_step", "configure_optimizers"} <= {
                f.name for f in node.body if isinstance(f, ast.FunctionDef)
            }:
                self.lightning = node
            elif (
                isinstance(node, ast.Call)
                and (last_name(node.func) or "").endswith("Trainer")
                and {"args", "train_dataset"} & {k.arg for k in node.keywords}
            ):
                self.hf_trainer = self.loop is None
        self._find_config()

    def _find_config(self) -> None:
        precision, scaler = "fp32", False
        for call in (node for node in ast.walk(self.tree) if isinstance(node, ast.Call)):
            name = last_name(call.func)
            keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
            if name == "autocast":
                wanted = (
                    last_name(keywords["dtype"])
                    if "dtype" in keywords
                    else next((n for a in call.args if (n := last_name(a)) in ("bfloat16", "float16")), "float16")
                )
                precision = {"bfloat16": "bf16", "float16": "fp16"}.get(wanted or "", precision)
            elif name == "GradScaler":
                enabled = keywords.get("enabled")
                scaler = not (isinstance(enabled, ast.Constant) and not enabled.value)
                if isinstance(scale := keywords.get("init_scale"), ast.expr) and (value := _number(scale)) is not None:
                    self.config["init_scale"] = value
            elif name in ("clip_grad_norm_", "clip_grad_norm"):
                limit = keywords.get("max_norm") or (call.args[1] if len(call.args) > 1 else None)
                if limit is not None and (value := _number(limit)) is not None:
                    self.config["clip"] = value
        self.config = {"precision": precision, "scaler": scaler} | self.config


def statements_of_loss(found: TrainingScript) -> list[ast.stmt]:
    """The loop's statements that the loss is computed from, up to `backward`."""
    kept: list[ast.stmt] = []
    if not found.loop or not found.loss_name:
        return kept
    for statement in found.loop.body:
        if any(_backward_of(node) for node in ast.walk(statement)) and not isinstance(statement, ast.With):
            break
        if not _housekeeping(statement):
            kept.append(statement)
        if isinstance(statement, ast.With) and any(_backward_of(node) for node in ast.walk(statement)):
            kept[-1] = _until_backward(statement)
            break
    return _that_lead_to(found.loss_name, kept)


def _that_lead_to(name: str, statements: list[ast.stmt]) -> list[ast.stmt]:
    """Those statements that set `name`, or what it is computed from; none when nothing sets it."""
    wanted, kept = {name}, []
    for statement in reversed(statements):
        nodes = list(ast.walk(statement))
        stored = [n for n in nodes if isinstance(n, ast.Name | ast.Subscript | ast.Attribute) and isinstance(n.ctx, ast.Store)]
        changed = {name for n in stored if (name := n.id if isinstance(n, ast.Name) else last_name(n.value) or "")}
        if wanted & changed:
            kept.append(statement)
            wanted |= {n.id for n in nodes if isinstance(n, ast.Name)}
    sets_it = any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for s in kept for n in ast.walk(s))
    return kept[::-1] if sets_it else []


def _until_backward(block: ast.With) -> ast.With:
    body: list[ast.stmt] = []
    for statement in block.body:
        if any(_backward_of(node) for node in ast.walk(statement)):
            break
        body.append(statement)
    return ast.With(items=block.items, body=body or [ast.Pass()], lineno=block.lineno)


def _housekeeping(statement: ast.stmt) -> bool:
    """Whether a statement is about the loop, not the loss: zero_grad, logging, control flow."""
    if isinstance(statement, ast.If | ast.Continue | ast.Break | ast.Pass | ast.AugAssign):
        return True
    return isinstance(statement, ast.Expr)


def _owner_of_parameters(call: ast.expr) -> str | None:
    """The name whose `.parameters()` a call is given, also when other functions get that in between."""
    for node in ast.walk(call):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("parameters", "named_parameters")
            and isinstance(node.func.value, ast.Name)
        ):
            return (
                node.func.value.id if last_name(call.func if isinstance(call, ast.Call) else call) not in ("clip_grad_norm_", "sum", "list") else None
            )
    return None


def _backward_of(node: ast.AST) -> str | None:
    """The name that a call computes gradients of: loss.backward(), scaler.scale(loss).backward(), accelerator.backward(loss)."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"):
        return None
    inner = node.args[0] if node.args and isinstance(node.args[0], ast.Name) else node.func.value
    if isinstance(inner, ast.Call) and inner.args:
        inner = inner.args[0]
    if isinstance(inner, ast.BinOp):
        inner = inner.left
    return inner.id if isinstance(inner, ast.Name) else None


def without_moves(value: ast.expr) -> ast.expr:
    """A call without `.to(device)` and `.cuda()` behind it: the replay chooses the device."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Call):
        moves = value.func.attr == "cuda" or (
            value.func.attr == "to" and any("device" in ast.unparse(a) or "cuda" in ast.unparse(a) for a in value.args)
        )
        if not moves:
            break
        value = value.func.value
    return value


def last_name(node: ast.expr | None) -> str | None:
    """The last part of a dotted name."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
    return None


def _number(node: ast.expr) -> float | None:
    """Value of a number, or of a power like 2.0**16."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.BinOp(left=left, op=ast.Pow(), right=right) if (
            (base := _number(left)) is not None and (exponent := _number(right)) is not None and abs(exponent) < 200
        ):
            return float(base**exponent)
    return None
