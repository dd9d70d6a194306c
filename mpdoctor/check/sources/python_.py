"""Python configs, read by `ast` and never executed.

What is understood: literals, `dict(...)`, lists and tuples, names assigned before in the same file, and
arithmetic on numbers. Everything else stays pending, with its text. Keyword arguments of the classes that
take training settings (`TrainingArguments(...)`, `Accelerator(...)`, `Trainer(...)`) are documents of their own.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable

from mpdoctor.check.sources.node import MAX_DEPTH, MAX_NODES, Document, Node, Scalar
from mpdoctor.check.sources.python_names import Names
from mpdoctor.check.sources.source import Source
from mpdoctor.core.errors import UnreadableInput

CONSTRUCTORS = (
    "TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig", "ORPOConfig", "PPOConfig", "RewardConfig",
    "CPOConfig", "SentenceTransformerTrainingArguments", "UnslothTrainingArguments", "Accelerator", "LightningTrainer", "BitsAndBytesConfig",
    "LoraConfig",
)  # fmt: skip
"""Classes whose keyword arguments are training settings. `Trainer` counts where it is Lightning's."""
_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
_PENDING = "a Python expression, which is not evaluated"


def parse(text: str, path: str) -> list[Document]:
    """The module's assignments, and each construction of a class that takes settings."""
    tree = syntax_tree(text, path)
    root = _Module(text, path).assignments(tree)
    module = [Document(path=path, syntax="python", root=root, text=text)] if root.mapping else []
    return module + constructions(tree, text, path)


def constructions(tree: ast.Module, text: str, path: str) -> list[Document]:
    """Each call of a class that takes settings: its keyword arguments, names followed to what they stand for."""
    lightning = "lightning" in text
    calls = [(node, name) for node in ast.walk(tree) if isinstance(node, ast.Call) and (name := _takes_settings(node, lightning=lightning))]
    if not calls:
        return []
    reader = _Module(text, path, Names(tree))
    found = []
    for call, name in calls:
        arguments = reader.keywords(call.keywords, call)
        if name == "from_pretrained":
            if call.args:
                arguments.mapping["pretrained_model_name_or_path"] = reader.value(call.args[0], 2)
            owner = ast.unparse(call.func).rpartition(".from_pretrained")[0]
            arguments.mapping["class"] = Node(owner, path, call.lineno, call.col_offset + 1, raw=owner)
        document = Document(path=path, syntax="python", root=arguments, text=text, constructor=name)
        spread = next((k.value for k in call.keywords if k.arg is None and not reader.value(k.value, 2).is_mapping), None)
        if spread is not None:
            document.incomplete = f"`**{ast.unparse(spread)[:40]}` may set it"
        found.append(document)
    return found


def _takes_settings(call: ast.Call, *, lightning: bool) -> str:
    """The name that a call's document has; empty for a call of anything else."""
    name = _called(call)
    if name == "from_pretrained":
        return name if _is_model(call.func) else ""
    if not call.keywords:
        return ""
    return "LightningTrainer" if name == "Trainer" and lightning else name if name in CONSTRUCTORS else ""


def syntax_tree(text: str, path: str) -> ast.Module:
    """The tree of a Python file. Raises UnreadableInput with file, line, column and what Python says."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, filename=path)
    except SyntaxError as error:
        raise UnreadableInput(f"{path}:{error.lineno or 1}:{error.offset or 1}: not valid Python: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise UnreadableInput(f"{path}: not valid Python: nested too deeply to be parsed") from None
    except ValueError as error:
        raise UnreadableInput(f"{path}: not valid Python: {error}") from None


class _Module:
    """Evaluates what can be read without running anything."""

    def __init__(self, text: str, path: str, scopes: Names | None = None) -> None:
        """With `scopes` names are looked up in them, else they stand for what `assignments` has read so far."""
        self.path = path
        self.lines = text.split("\n")
        self.names: dict[str, Node] = {}
        self.scopes = scopes
        self.meanings: dict[ast.expr, Node | None] = {}
        self.count = 0

    def assignments(self, tree: ast.Module) -> Node:
        root: dict[str, Node] = {}
        for statement in tree.body:
            target: ast.expr | None = None
            value: ast.expr | None = None
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target, value = statement.targets[0], statement.value
            elif isinstance(statement, ast.AnnAssign):
                target, value = statement.target, statement.value
            if isinstance(target, ast.Name) and value is not None:
                node = self.value(value, 1)
                node.line, node.column = target.lineno, target.col_offset + 1
                root[target.id] = self.names[target.id] = node
        return Node(root, self.path, 1, 1, 1, 1)

    def keywords(self, keywords: list[ast.keyword], at: ast.expr) -> Node:
        members: dict[str, Node] = {}
        for keyword in keywords:
            if keyword.arg is not None:
                node = self.value(keyword.value, 2)
                node.line, node.column = keyword.lineno, keyword.col_offset + 1
                members[keyword.arg] = node
            else:
                members.update(self.value(keyword.value, 2).mapping)
        return self.node(members, at)

    def value(self, expression: ast.expr, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise UnreadableInput(f"{self.path}:{expression.lineno}:{expression.col_offset + 1}: nested deeper than {MAX_DEPTH} levels")
        match expression:
            case ast.Constant(value=None | bool() | int() | float() | str()):
                return self.node(expression.value, expression)  # type: ignore[arg-type]  # the pattern says which types
            case ast.Dict():
                pairs = zip(expression.keys, expression.values, strict=True)
                named = {str(key.value): self.keyed(key, item, depth) for key, item in pairs if isinstance(key, ast.Constant)}
                return self.node(named, expression)
            case ast.Call(func=ast.Name(id="dict"), args=[]):
                return self.keywords(expression.keywords, expression)
            case ast.Call(func=ast.Attribute() | ast.Name()) if expression.keywords and not expression.args:
                made = self.keywords(expression.keywords, expression)
                made.mapping.setdefault("type", self.node(_called(expression), expression))
                return made
            case ast.List() | ast.Tuple():
                return self.node([self.value(item, depth + 1) for item in expression.elts], expression)
            case ast.Name() if self.scopes is not None:
                meant = self.scopes.value(expression)
                if meant is not None and meant not in self.meanings:
                    self.meanings[meant] = None  # a name that is defined by itself stands for nothing
                    self.meanings[meant] = self.value(meant, 2)
                if meant is not None and (found := self.meanings[meant]) is not None:
                    return found.with_value(found.value)
            case ast.Name() if expression.id in self.names:
                known = self.names[expression.id]
                return known.with_value(known.value)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.value(operand, depth + 1)
                if isinstance(inner.value, (int, float)) and not isinstance(inner.value, bool):
                    return self.node(-inner.value, expression)
            case ast.BinOp():
                return self.computed(expression, depth)
            case ast.Attribute() if self.scopes is None or self.scopes.is_imported(expression):
                # torch.float16, ScheduleType.COSINE: the last part tells. (`args.precision` tells nothing.)
                return self.node(ast.unparse(expression), expression)
            case _:
                pass
        return self.unread(expression)

    def keyed(self, key: ast.Constant, item: ast.expr, depth: int) -> Node:
        node = self.value(item, depth + 1)
        node.line, node.column = key.lineno, key.col_offset + 1
        return node

    def computed(self, expression: ast.BinOp, depth: int) -> Node:
        left, right = self.value(expression.left, depth + 1).value, self.value(expression.right, depth + 1).value
        apply = _ARITHMETIC.get(type(expression.op))
        numbers = isinstance(left, (int, float)) and isinstance(right, (int, float)) and max(abs(left), abs(right)) < 1e300
        if isinstance(expression.op, ast.Pow) and numbers and abs(float(right)) <= 64 and abs(float(left)) <= 1024:  # type: ignore[arg-type]
            return self.node(float(left) ** float(right) if left or float(right) > 0 else 0.0, expression)  # type: ignore[arg-type]
        if apply is None or not numbers:
            return self.unread(expression)
        try:
            return self.node(apply(left, right), expression)  # type: ignore[arg-type]
        except (ZeroDivisionError, OverflowError):
            return self.unread(expression)

    def unread(self, expression: ast.expr) -> Node:
        made = self.node("", expression)
        made.value, made.pending = made.raw, _PENDING
        return made

    def node(self, value: dict[str, Node] | list[Node] | Scalar, at: ast.expr) -> Node:
        self.count += 1
        if self.count > MAX_NODES:
            raise UnreadableInput(f"{self.path}:{at.lineno}: more than {MAX_NODES:,} values, which no training config has")
        line, column = at.lineno, at.col_offset + 1
        raw = None
        if not isinstance(value, (dict, list)):
            end = at.end_col_offset if at.end_lineno == at.lineno else None
            raw = self.lines[line - 1].encode()[at.col_offset : end].decode("utf-8", "replace") if line <= len(self.lines) else ""
        quoted = isinstance(value, str) and bool(raw) and raw is not None and raw[:1] in "\"'rRbBfFuU" and raw[-1:] in "\"'"
        if quoted and isinstance(value, str):
            raw = value
        return Node(value, self.path, line, column, line, column, raw, quoted)


def _is_model(function: ast.expr) -> bool:
    """Whether `X.from_pretrained` loads a model, by its class's name (not a tokenizer, a config, a pipeline)."""
    owner = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
    return "Model" in owner or owner.endswith(("ForCausalLM", "ForConditionalGeneration", "ForSequenceClassification"))


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


SOURCE = Source(suffixes=(".py",), parse=parse)
