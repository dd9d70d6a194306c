"""Hugging Face `TrainingArguments` and TRL: flat YAML or JSON, read by `HfArgumentParser`.

TRL's files are the same with a model, PEFT and quantisation keys beside. What launches the run (accelerate
with FSDP or ZeRO) is not in the file, so whether 16-bit weights get fp32 master copies stays unknown here.
Defaults: transformers 5.24 and 4.46, TRL of July 2026.
"""

from __future__ import annotations

import re
from typing import Any

from mpdoctor.check import hf_arguments as hf
from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import model_settings
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

MARKS = (
    "per_device_train_batch_size", "num_train_epochs", "learning_rate", "output_dir", "lr_scheduler_type", "logging_steps",
    "gradient_accumulation_steps", "bf16", "fp16", "report_to", "save_strategy", "eval_strategy", "evaluation_strategy",
    "warmup_ratio", "adam_epsilon", "max_grad_norm", "per_device_eval_batch_size", "save_total_limit", "optim", "logging_strategy",
    "fp16_full_eval", "bf16_full_eval", "gradient_checkpointing", "dataloader_num_workers", "remove_unused_columns",
)  # fmt: skip
TRL_MARKS = (
    "use_peft", "lora_r", "lora_target_modules", "load_in_4bit", "load_in_8bit", "dataset_mixture", "max_seq_length", "max_length",
    "bnb_4bit_quant_type", "use_bnb_nested_quant", "attn_implementation", "num_generations", "beta", "max_prompt_length", "max_completion_length",
)  # fmt: skip
CLASSES = (
    "TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig", "ORPOConfig", "PPOConfig", "RewardConfig",
    "CPOConfig", "SentenceTransformerTrainingArguments", "UnslothTrainingArguments",
)  # fmt: skip
"""Their keyword arguments in a script are the same settings."""
PREFERENCE_MARKS = ("num_generations", "max_completion_length", "beta", "max_prompt_length", "kl_coef", "reward_model_path", "reward_funcs")

_OTHER_PEFT = re.compile(r"\b(?:from peft import|import peft)\b")
"""Prompt tuning and its kin train few numbers at rates of 1e-2 to 1."""


def claim(document: Document) -> float:
    """Weak on purpose: LLaMA-Factory and ms-swift files hold the same keys and more telling ones."""
    if document.constructor in CLASSES:
        return 90
    found = count(document, MARKS)
    if found < 3 and not (found and count(document, ("bf16", "fp16")) and count(document, ("learning_rate", "optim"))):
        return 0
    return 10 + found


def lift(reader: Reader) -> TrainingConfig:
    """TrainingArguments' settings; TRL's model, PEFT and quantisation keys where they stand."""
    trl = is_trl(reader)
    fields = hf.trainer_fields(reader)
    if trl:
        fields |= _trl_defaults(reader)
    compute = fields_of_amp(reader, trl=trl)
    param = _beside(reader, "param_dtype", _param_dtype(reader, fields["framework_version"], trl=trl))
    method = _beside(reader, "method", _method(reader, trl=trl))
    model = _beside(reader, "model", reader.text("model_name_or_path", "model_init_kwargs.model_name_or_path"))
    # ZeRO keeps fp32 copies whatever the weights are loaded in; its config file says the rest.
    mode = {} if reader.has("deepspeed") else hf.mode_of(compute["compute_dtype"], param, method)
    fields |= compute | mode | model_settings(model) | _quantization(reader, param, trl=trl)
    if "optimizer_state_dtype" not in fields and param.value == "fp32":
        fields["optimizer_state_dtype"] = param.becomes("fp32", "follows the parameters")
    return TrainingConfig(
        dialect="hf_trainer",
        files=(reader.path,),
        **fields,
        param_dtype=param,
        sequence_length=reader.integer("max_length", "max_seq_length"),
        packing=reader.flag("packing"),
        domain=model.becomes("language", "TRL trains language models") if trl else UNKNOWN,
        method=method,
        attention=hf.attention(reader.text("attn_implementation", "model_init_kwargs.attn_implementation")),
        lora_rank=reader.integer("lora_r"),
        lora_alpha=reader.number("lora_alpha"),
        lora_rank_stabilised=reader.flag("use_rslora"),
        extra={"hf.trl": model.becomes(True) if trl else UNKNOWN},
    )


def _beside(reader: Reader, field: str, own: Setting[Any]) -> Setting[Any]:
    """A setting of this document, or else of one that was read before it (a model's, a script's `from_pretrained`)."""
    if own.known or own.at is not None:
        return own
    return next((given for sibling in reader.siblings if (given := sibling.setting(field)).known), own)


def is_trl(reader: Reader) -> bool:
    """Whether the file holds TRL's keys beside TrainingArguments'."""
    return reader.has("model_name_or_path") and reader.has(*TRL_MARKS)


def fields_of_amp(reader: Reader, *, trl: bool = False) -> Fields:
    """The two switches and what comes of them. Newer TRL turns bf16 on unless fp16 is set, older did not: unset stays unknown there."""
    fp16 = reader.flag("fp16", default=False, note=hf.VERSION)
    bf16 = reader.flag("bf16", default=False, note=hf.VERSION)
    if trl and not bf16.explicit:
        bf16 = fp16.becomes(False) if fp16.value else UNKNOWN
    compute = hf.switches(bf16, fp16)
    return {"fp16_requested": fp16, "bf16_requested": bf16, "compute_dtype": compute} | hf.scaling(reader, compute)


def _trl_defaults(reader: Reader) -> Fields:
    preference = reader.has(*PREFERENCE_MARKS)
    return {
        "lr": reader.number("learning_rate", default=1e-6 if preference else 2e-5, note="TRL of July 2026"),
        "log_every": reader.integer("logging_steps", default=10, note="TRL of July 2026"),
        "activation_checkpointing": reader.flag("activation_checkpointing", "gradient_checkpointing", default=True, note="TRL of July 2026"),
    }


def _param_dtype(reader: Reader, version: Setting[str], *, trl: bool) -> Setting[str]:
    """What the weights are loaded in: the dtype that stands in the file, or the loader's default (5: the checkpoint's own, 4: fp32)."""
    given = reader.dtype("dtype", "torch_dtype", "model_init_kwargs.dtype", "model_init_kwargs.torch_dtype")
    if given.known or given.at:
        return given
    if trl:
        return reader.constant("fp32", "TRL's default `dtype: float32`", key="dtype")
    if str(version.value).startswith("4"):
        return reader.constant("fp32", "from_pretrained's default in transformers 4", key="torch_dtype")
    return UNKNOWN


def _method(reader: Reader, *, trl: bool) -> Setting[str]:
    """Full fine-tuning, LoRA, QLoRA, or preference tuning with or without an adapter."""
    peft, quantised = reader.flag("use_peft"), reader.flag("load_in_4bit")
    preference = trl and reader.has(*PREFERENCE_MARKS)
    if peft.value:
        return peft.becomes("prefer_lora" if preference else "qlora" if quantised.value else "lora")
    if reader.document.constructor and _OTHER_PEFT.search(reader.document.text) and "LoraConfig" not in reader.document.text:
        at = reader.document.root.span()
        return Setting("other_peft", Origin.DERIVED, at, None, "the script takes another method than LoRA from PEFT")
    if not trl:
        return UNKNOWN
    model = reader.text("model_name_or_path")
    return Setting("prefer_full" if preference else "full_ft", Origin.DERIVED, model.at, model.raw, "a pretrained model and no `use_peft`")


def _quantization(reader: Reader, param: Setting[str], *, trl: bool) -> Fields:
    four, eight = reader.flag("load_in_4bit"), reader.flag("load_in_8bit")
    both: Fields = {"quantization": eight.becomes("bnb8")} if eight.value else {}
    if four.value:
        quant_note = "TRL's default" if trl else "BitsAndBytesConfig's default"
        both = {
            "quantization": four.becomes("bnb4"),
            "quant_compute_dtype": param.becomes(param.value, "TRL passes `dtype`") if trl else reader.dtype("bnb_4bit_compute_dtype"),
            "quant_storage_dtype": reader.dtype("bnb_4bit_quant_storage"),
            "quant_type": reader.text("bnb_4bit_quant_type", default="nf4" if trl else "fp4", note=quant_note),
        }
    return both


DIALECT = Dialect(title="Hugging Face TrainingArguments / TRL", role=Role.TRAINER, version=hf.VERSION, claim=claim, lift=lift, plain_yaml=True)
