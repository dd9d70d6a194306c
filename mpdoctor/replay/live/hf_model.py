"""Building the model of a Hugging Face folder with its weights, by transformers' own loader. Code of the folder runs only when it is trusted."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.checkpoints import Checkpoint, Role
from mpdoctor.replay.checkpoints.checkpoint import ProblemKind
from mpdoctor.replay.checkpoints.weights import has_weights

_BROKEN = (ProblemKind.TRUNCATED, ProblemKind.EMPTY, ProblemKind.MISSING, ProblemKind.MALFORMED)
"""Problems of weights and their index with which no model can be built."""
_SEED = 42
"""For tensors that the checkpoint does not hold: the same in every replay."""


def class_name(checkpoint: Checkpoint) -> str:
    """The model class that config.json names; empty where it names none."""
    names = checkpoint.config.get("architectures") or []
    name = names[0] if isinstance(names, list) and names else ""
    return name if isinstance(name, str) else ""


def why_not(checkpoint: Checkpoint, *, trust_remote_code: bool) -> str | None:
    """Why the model cannot be built from the folder, or None."""
    import transformers

    name = class_name(checkpoint)
    known = _built_in(checkpoint)
    if checkpoint.config.get("auto_map") and not known and not trust_remote_code:
        return f"{name} needs code from the checkpoint's own folder, which is not run; a recipe, or --trust-remote-code, would let mpdoctor replay it"
    if not known and not (trust_remote_code and _own_class(checkpoint)):
        return f"transformers {transformers.__version__} has no model class {name}; a recipe would let mpdoctor replay it"
    broken = next((p for p in checkpoint.problems if p.kind in _BROKEN and p.file.suffix in (".safetensors", ".bin", ".json")), None)
    if broken is not None:
        return f"the model cannot be built: {broken.file.name}: {broken.text}"
    if not checkpoint.by_role(Role.WEIGHT):
        return "the folder holds no model weights"
    if not has_weights(frozenset(path.name for path in checkpoint.path.iterdir())):
        return "the weights are in shards that only their own framework puts together; a recipe, or merged weights, would let mpdoctor replay it"
    return None


def build_model(
    checkpoint: Checkpoint, notes: list[str], *, trust_remote_code: bool, model_class: Any = None, changes: dict[str, Any] | None = None
) -> torch.nn.Module:
    """The model with its weights, in the dtype in which they are stored (fp32 where there are several).

    Args:
        checkpoint: the opened folder.
        notes: what does not come from the checkpoint is added here.
        trust_remote_code: run the model code that the folder itself carries.
        model_class: the class, where it is not the one that config.json names.
        changes: settings of config.json to replace.

    Raises UnreadableInput when configuration and weights do not fit.
    """
    import transformers

    folder = checkpoint.path
    if checkpoint.config.get("auto_map") and not trust_remote_code:
        notes.append(f"the folder carries model code of its own, which is not run: the model is transformers' {class_name(checkpoint)}")
    stored = {entry.dtype for entry in checkpoint.by_role(Role.WEIGHT) if entry.dtype in ("float16", "bfloat16", "float32", "float64")}
    dtype = getattr(torch, next(iter(stored))) if len(stored) == 1 else torch.float32
    try:
        with quiet(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=trust_remote_code)
            for name, value in (changes or {}).items():
                setattr(config, name, value)
            builder = model_class(config) if callable(model_class) and not isinstance(model_class, type) else model_class
            if builder is None and trust_remote_code and _own_class(checkpoint):
                builder = _loaded_class(checkpoint)
            builder = builder or getattr(transformers, class_name(checkpoint))
            model, loading = builder.from_pretrained(
                str(folder),
                config=config,
                local_files_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **{_dtype_argument(): dtype},
                **({"trust_remote_code": True} if trust_remote_code else {}),
            )
    except Exception as error:  # transformers raises whatever config.json leads it to
        if isinstance(error, ImportError):
            hint = "Install it, or give a recipe (--recipe)."
        else:
            hint = "Compare config.json with the one of the run, or give a recipe (--recipe)."
        raise UnreadableInput(f"{folder / 'config.json'}: {type(error).__name__} while building the model: {_first_line(error)}", hint) from error
    _check(checkpoint, model, loading, notes)
    return model  # type: ignore[no-any-return]


def _check(checkpoint: Checkpoint, model: Any, loading: dict[str, Any], notes: list[str]) -> None:
    """Refuse weights of another model; note those that start anew."""
    wrong = sorted(loading.get("mismatched_keys") or ())
    missing = sorted(loading.get("missing_keys") or ())
    if wrong or len(missing) == len(model.state_dict()):
        names = [f"{k} ({list(file)} in the file, {list(own)} by config.json)" for k, file, own in wrong] or missing
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise UnreadableInput(
            f"{checkpoint.path}: {len(names)} tensors do not fit the model of config.json: {', '.join(names[:3])}{more}",
            "Use the config.json of the run.",
        )
    if missing:
        notes.append(f"{len(missing)} tensors of the model are not in the checkpoint and start anew (first: {missing[0]})")
    unused = sorted(loading.get("unexpected_keys") or ())
    if unused:
        notes.append(f"{len(unused)} tensors of the checkpoint are not part of {type(model).__name__} and are left out (first: {unused[0]})")


def _built_in(checkpoint: Checkpoint) -> bool:
    """Whether transformers itself has the model class. Code of the folder that defines a class of the same name is its older copy, mostly."""
    import transformers

    entries = checkpoint.config.get("auto_map")
    others = isinstance(entries, dict) and any(str(key).startswith("AutoModel") for key in entries) and _own_class(checkpoint) is None
    return not others and bool(class_name(checkpoint)) and hasattr(transformers, class_name(checkpoint))


def _own_class(checkpoint: Checkpoint) -> str | None:
    """Where the folder's own code defines the model class (`modeling_mine.Mine`), or None."""
    entries = checkpoint.config.get("auto_map")
    name = class_name(checkpoint)
    places = [str(v) for v in entries.values()] if isinstance(entries, dict) else []
    return next((place for place in places if name and place.rpartition(".")[2] == name), None)


def _loaded_class(checkpoint: Checkpoint) -> Any:
    """The model class of the folder's own code, which runs here."""
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    return get_class_from_dynamic_module(_own_class(checkpoint) or "", str(checkpoint.path), local_files_only=True)


def _dtype_argument() -> str:
    """`dtype`, which was `torch_dtype` before transformers 4.56."""
    import transformers

    major, minor = (int(part) for part in transformers.__version__.split(".")[:2])
    return "dtype" if (major, minor) >= (4, 56) else "torch_dtype"


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' remarks and bars: what matters of them is said in the report."""
    from transformers.utils import logging as hf_logging

    level, bars = logging.getLogger("transformers").level, hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity(logging.CRITICAL)
    hf_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        hf_logging.set_verbosity(level)
        if bars:
            hf_logging.enable_progress_bar()


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "")


def folders_of(*checkpoints: Checkpoint | None) -> tuple[Path, ...]:
    """Where tokenizer and processors may be: the folders themselves, then those that hold them."""
    own = [checkpoint.path for checkpoint in checkpoints if checkpoint is not None]
    return tuple(dict.fromkeys((*own, *(path.resolve().parent for path in own))))
