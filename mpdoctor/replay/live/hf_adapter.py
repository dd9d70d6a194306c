"""PEFT adapters: the base model from a local folder, with the adapter's trained weights on it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.errors import MpdoctorError, UnreadableInput
from mpdoctor.replay.checkpoints import Checkpoint, Role, open_checkpoint
from mpdoctor.replay.live.hf_model import build_model, class_name, quiet, why_not
from mpdoctor.replay.live.weights import load_weights

_AUTO_CLASSES = {
    "CAUSAL_LM": "AutoModelForCausalLM",
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "QUESTION_ANS": "AutoModelForQuestionAnswering",
    "FEATURE_EXTRACTION": "AutoModel",
}
"""PEFT's task types, and the class that a script for the task loads the base with."""
_HEADS = ("score.weight", "classifier.weight", "classifier.out_proj.weight", "qa_outputs.weight")
"""Heads that an adapter saves with itself; their first size is the number of labels."""


def base_of(checkpoint: Checkpoint, given: Path | None) -> tuple[Checkpoint | None, str | None]:
    """The base model's folder, opened, or None and why there is none.

    Args:
        checkpoint: the adapter's folder.
        given: the folder that the user named, or None.

    Raises UnreadableInput when the user's folder holds no model.
    """
    named = (checkpoint.adapter_config or {}).get("base_model_name_or_path")
    if given is not None:
        return open_checkpoint(given), None
    for place in (Path(named), checkpoint.path / named, checkpoint.path.parent / named) if isinstance(named, str) and named else ():
        if place.is_dir():
            try:
                return open_checkpoint(place), None
            except MpdoctorError as error:
                return None, f"the adapter's base model cannot be opened ({error.message}); --base-model FOLDER names another copy"
    what = f"the adapter's base model {named} is not a local folder" if named else "adapter_config.json names no base model"
    return None, f"{what}; --base-model FOLDER would let mpdoctor replay the next steps"


def adapter_obstacle(checkpoint: Checkpoint, base: Checkpoint, *, trust_remote_code: bool) -> str | None:
    """Why base and adapter cannot be put together, or None."""
    if find_spec("peft") is None:
        return "peft is not installed; with it (pip install peft) mpdoctor would put the adapter on its base model and replay the next steps"
    if not checkpoint.by_role(Role.ADAPTER):
        return "the folder holds no adapter weights"
    obstacle = why_not(base, trust_remote_code=trust_remote_code)
    return f"base model {base.path}: {obstacle}" if obstacle else None


def build_adapted(checkpoint: Checkpoint, base: Checkpoint, notes: list[str], *, trust_remote_code: bool) -> torch.nn.Module:
    """The base model, frozen, with the adapter's weights to train.

    Raises UnreadableInput when adapter and base do not fit.
    """
    from peft import PeftConfig, get_peft_model, set_peft_model_state_dict

    weights = load_weights(checkpoint, Role.ADAPTER, Role.WEIGHT)
    model_class, changes = _class_of(checkpoint, base, weights)
    started: list[str] = []
    model = build_model(base, started, trust_remote_code=trust_remote_code, model_class=model_class, changes=changes)
    try:
        with quiet():
            config = PeftConfig.from_pretrained(str(checkpoint.path))
            config.inference_mode = False
            adapted: torch.nn.Module = get_peft_model(model, config)
            loaded = set_peft_model_state_dict(adapted, weights)
    except Exception as error:  # peft raises whatever adapter_config.json leads it to
        reason = next((line for line in str(error).splitlines()[1:2] or str(error).splitlines() if line.strip()), type(error).__name__)
        raise UnreadableInput(
            f"{checkpoint.path}: the adapter does not fit its base model {base.path}: {reason.strip()}",
            "Name the base model that it was trained on (--base-model FOLDER).",
        ) from error
    unexpected = list(getattr(loaded, "unexpected_keys", ()))
    if unexpected:
        raise UnreadableInput(
            f"{checkpoint.path}: {len(unexpected)} tensors of the adapter have no place on {base.path} (first: {unexpected[0]})",
            "Name the base model that it was trained on (--base-model FOLDER).",
        )
    saved = {name.partition("modules_to_save.default.")[2] for name, _ in adapted.named_parameters() if "modules_to_save" in name}
    notes += [note for note in started if not saved]
    dtypes = ", ".join(sorted({str(p.dtype).removeprefix("torch.") for p in model.parameters() if not p.requires_grad}))
    trained = ", ".join(sorted({str(p.dtype).removeprefix("torch.") for p in adapted.parameters() if p.requires_grad}))
    notes.append(f"the base model is loaded as it is stored ({dtypes}) and the adapter as PEFT loads it ({trained}); the checkpoint keeps neither")
    return adapted


def _class_of(checkpoint: Checkpoint, base: Checkpoint, weights: dict[str, torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    """(what makes the class of the base model from its configuration, or None for its own class; settings to change)."""
    import transformers

    named = _AUTO_CLASSES.get(str((checkpoint.adapter_config or {}).get("task_type") or ""))
    if named is None:
        return None, {}
    mapping = getattr(transformers, named)._model_mapping
    own = class_name(base)

    def of(config: Any) -> Any:
        found = mapping.get(type(config), None)
        candidates = found if isinstance(found, tuple | list) else (found,)
        return next((c for c in candidates if c is not None and c.__name__ == own), candidates[0]) or getattr(transformers, own)

    head = next((t for n, t in weights.items() if n.endswith(_HEADS) and t.dim() == 2 and "lora_" not in n), None)
    classes = "CLS" in str((checkpoint.adapter_config or {}).get("task_type"))
    return of, {"num_labels": int(head.shape[0])} if head is not None and classes else {}
