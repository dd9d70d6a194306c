"""A draft of a recipe, from a training script where one is given.

The script is read by `ast` and never executed: the model is what the optimizer's parameters belong to, the loss is what `backward` is called
on, and the statements that lead to it are copied. What could not be found stays a marked gap.
"""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

from mpdoctor.drafting.training_script import TrainingScript, last_name, statements_of_loss, without_moves

MARK = "# CHECK:"
"""Begins every line of a draft that a person has to look at."""

_HEAD = '''"""Recipe for `mpdoctor replay --recipe {name}`{origin}.

A recipe builds the run that broke: build(), batches() and loss(). mpdoctor does the rest of the step itself (backward, unscale, clip,
optimizer step), watches it, and changes one thing at a time. Lines marked "CHECK" need your eyes.
"""
'''

_MODEL = "    model = torch.nn.Linear(16, 4)  # CHECK: your model, with the weights from before the step that broke"
_OPTIMIZER = "    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)  # CHECK: your optimizer and its settings"

_BATCHES = """def batches():
    # CHECK: the batches of the step that broke and a few before it. To save them from the training loop:
    #     torch.save(recent, "batches.pt")    # recent: a list of the last batches, on the CPU
    return torch.load("batches.pt", weights_only=True)
"""

_LOSS = """def loss(model, batch):
    inputs, labels = batch  # CHECK: what a batch holds
    with torch.autocast("cuda", dtype=torch.float16):  # CHECK: the autocast of your loop; without a GPU it is emulated
        return torch.nn.functional.cross_entropy(model(inputs), labels)
"""

_CONFIG_HELP = (
    "# precision: fp32, bf16 or fp16, in words; scaler: a GradScaler with init_scale; clip: limit of the gradient norm; accum: batches per step"
)


def draft(script: Path | None = None, *, name: str = "recipe.py") -> str:
    """The text of a recipe: a template, filled in from `script` as far as it could be read.

    Raises UnreadableInput for a script that is missing or no Python.
    """
    if script is None:
        parts = [
            _HEAD.format(name=name, origin=""),
            "import torch\n",
            f"def build():\n{_MODEL}\n{_OPTIMIZER}\n    return model, optimizer\n",
            _BATCHES,
            _LOSS,
        ]
        return "\n\n".join([*parts, _config({"precision": "fp16", "scaler": True})])
    found = TrainingScript.of(script)
    if found.lightning and not found.loop:
        return _of_lightning(found, found.lightning, name)
    body = [_build(found), _BATCHES, _loss(found), _config(found.config)]
    head = [_HEAD.format(name=name, origin=f", drafted from {script.name}"), _imports(found, "\n".join(body))]
    return "\n\n".join([*head, *body])


def _of_lightning(found: TrainingScript, module: ast.ClassDef, name: str) -> str:
    """A LightningModule brings its own loss and optimizer."""
    head = _HEAD.format(name=name, origin=f", drafted from {found.path.name}")
    imports = f"import torch\n\nfrom {found.path.stem} import {module.name}  {MARK} this runs {found.path.name}: keep its training under a guard\n"
    made = next((n for n in ast.walk(found.tree) if isinstance(n, ast.Call) and last_name(n.func) == module.name), None)
    build = f"def build():\n    model = {ast.unparse(made) if made else f'{module.name}()'}  {MARK} with the settings of the run\n"
    build += '    optimizer = model.configure_optimizers()\n    if isinstance(optimizer, dict):\n        optimizer = optimizer["optimizer"]\n'
    build += f"    return model, optimizer  {MARK} one optimizer; a scheduler goes into scheduler(optimizer)\n"
    loss = 'def loss(model, batch):\n    result = model.training_step(batch, 0)\n    return result["loss"] if isinstance(result, dict) else result\n'
    precision = next(
        (v for n in ast.walk(found.tree) if isinstance(n, ast.keyword) and n.arg == "precision" for v in [ast.unparse(n.value).strip("'\"")]), "32"
    )
    config = {"precision": precision, "scaler": precision.startswith("16")}
    if precision.startswith(("16", "bf16")):
        kind = "bfloat16" if precision.startswith("bf16") else "float16"
        loss = loss.replace("    result = model", f'    with torch.autocast("cuda", dtype=torch.{kind}):\n        result = model')
    return "\n\n".join([head, imports, build, _BATCHES, loss, _config(config)])


def _build(found: TrainingScript) -> str:
    lines = ["def build():"]
    if found.model and isinstance(found.model.targets[0], ast.Name):
        lines.append(_indented(f"model = {found.source(without_moves(found.model.value))}", f"line {found.model.lineno} of {found.path.name}"))
    else:
        lines.append(_MODEL)
    if found.optimizer:
        text = found.source(found.optimizer.value)
        if found.model and isinstance(found.model.targets[0], ast.Name):
            text = _renamed(text, found.model.targets[0].id, "model")
        lines.append(_indented(f"optimizer = {text}", f"line {found.optimizer.lineno} of {found.path.name}"))
    else:
        lines.append(_OPTIMIZER)
    return "\n".join([*lines, "    return model, optimizer\n"])


def _loss(found: TrainingScript) -> str:
    statements = statements_of_loss(found)
    if not found.loop or not statements:
        return _LOSS
    target = found.loop.target
    if (
        isinstance(found.loop.iter, ast.Call)
        and last_name(found.loop.iter.func) == "enumerate"
        and isinstance(target, ast.Tuple)
        and len(target.elts) == 2
    ):
        target = target.elts[1]
    lines = ["def loss(model, batch):"]
    if not (isinstance(target, ast.Name) and target.id == "batch"):
        lines.append(f"    {ast.unparse(target)} = batch")
    model_name = found.model.targets[0].id if found.model and isinstance(found.model.targets[0], ast.Name) else "model"
    for statement in statements:
        text = _renamed(ast.unparse(statement), model_name, "model")
        lines += [f"    {line}" for line in text.splitlines()]
    lines.append(f"    return {found.loss_name}")
    return "\n".join(lines) + f"\n    {MARK} from the loop in line {found.loop.lineno} of {found.path.name}\n"


def _imports(found: TrainingScript, body: str) -> str:
    """The imports that the drafted code needs: the script's own, and names that the script defines, from the script."""
    tree = ast.parse(body)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)} | {
        "model",
        "batch",
        "build",
        "batches",
        "loss",
    }
    lines, given = ["import torch"], {"torch"}
    for node in found.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in used - given]
            if names:
                given |= {alias.asname or alias.name.partition(".")[0] for alias in names}
                lines.append(ast.unparse(type(node)(**{**{f: getattr(node, f) for f in node._fields}, "names": names})))
    missing = sorted(used - bound - given - set(dir(builtins)))
    defined = _defined(found.tree)
    own = [name for name in missing if name in defined]
    if own and found.path.stem.isidentifier():
        lines.append(
            f"\nfrom {found.path.stem} import {', '.join(own)}  {MARK} this runs {found.path.name}: keep its training under if __name__ == '__main__'"
        )
        missing = [name for name in missing if name not in own]
    if "device" in missing:
        lines.append('\ndevice = "cuda" if torch.cuda.is_available() else "cpu"')
        missing.remove("device")
    lines += [f"{name} = ...  {MARK} {_where_set(found, name)}" for name in missing]
    return "\n".join(lines) + "\n"


def _defined(tree: ast.Module) -> set[str]:
    """Names that a script defines at its top level."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _where_set(found: TrainingScript, name: str) -> str:
    for node in ast.walk(found.tree):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return f"line {node.lineno} of {found.path.name}: {' '.join(found.source(node).split())[:80]}"
    return f"{name} is not set in {found.path.name}"


def _config(config: dict[str, object]) -> str:
    return f"CONFIG = {config!r}\n{_CONFIG_HELP}\n"


def _renamed(text: str, old: str, new: str) -> str:
    if old == new:
        return text
    tree = ast.parse(text.strip())
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == old:
            node.id = new
    return ast.unparse(tree)


def _indented(statement: str, where: str) -> str:
    """A statement in a function's body, with a note on where it comes from."""
    lines = ast.unparse(ast.parse(statement)).splitlines()
    lines[-1] += f"  {MARK} {where}"
    return "\n".join(f"    {line}" for line in lines)
