"""`AutoModelForCausalLM.from_pretrained(...)` in a script: which model, in which dtype, with which attention."""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.hf_arguments import attention
from mpdoctor.check.lifting import model_settings
from mpdoctor.check.reader import Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "transformers 5.24"
_LANGUAGE = ("ForCausalLM", "ForConditionalGeneration", "ForSeq2SeqLM", "ForMaskedLM", "FastLanguageModel")


def claim(document: Document) -> float:
    """The call's name."""
    return 100 if document.constructor == "from_pretrained" else 0


def lift(reader: Reader) -> TrainingConfig:
    """The loader's arguments."""
    name = reader.text("pretrained_model_name_or_path", "model_name")
    return TrainingConfig(
        dialect="from_pretrained",
        files=(reader.path,),
        **model_settings(name),
        param_dtype=reader.dtype("dtype", "torch_dtype"),
        attention=attention(reader.text("attn_implementation")),
        domain=name.becomes("language") if name.known and _loads_language_model(reader) else UNKNOWN,
        method=_method(reader, name),
    )


def _loads_language_model(reader: Reader) -> bool:
    return str(reader.text("class").value or "").endswith(_LANGUAGE)


def _method(reader: Reader, name: Setting[str]) -> Setting[str]:
    """All weights are trained, unless the script mentions adapters."""
    adapters = any(word in reader.document.text for word in ("peft", "LoraConfig", "get_peft_model", "lora"))
    trains = "Trainer(" in reader.document.text or ".backward(" in reader.document.text
    if name.known and trains and not adapters and _loads_language_model(reader):
        return name.becomes("full_ft", "no adapter in the script")
    return UNKNOWN


DIALECT = Dialect(title="from_pretrained in a script", role=Role.PART, version=VERSION, claim=claim, lift=lift)
