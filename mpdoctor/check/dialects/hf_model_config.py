"""A Hugging Face model's `config.json`: family, size, and the dtype that its weights were saved in."""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

MARKS = ("architectures", "hidden_size", "transformers_version", "vocab_size", "num_hidden_layers", "d_model", "text_config", "num_attention_heads")


def claim(document: Document) -> float:
    """`model_type` and two of what every model's config has."""
    found = count(document, MARKS)
    return 60 + found if "model_type" in document.keys and found >= 2 else 0


def lift(reader: Reader) -> TrainingConfig:
    """Facts about the model; nothing about the run."""
    model_type = reader.text("model_type")
    dtype = reader.dtype("dtype", "torch_dtype", "text_config.dtype", "text_config.torch_dtype")
    return TrainingConfig(
        dialect="hf_model_config",
        files=(reader.path,),
        framework_version=reader.text("transformers_version"),
        model=reader.text("_name_or_path", "architectures.0"),
        model_family=_family(model_type),
        model_dtype=dtype,
        n_params=_parameters(reader),
        vocab_size=reader.integer("vocab_size", "text_config.vocab_size"),
        hidden_size=reader.integer("hidden_size", "d_model", "n_embd", "text_config.hidden_size"),
        **_quantization(reader),
    )


def _family(model_type: Setting[str]) -> Setting[str]:
    """`model_type` without what tells only the part of the model (`gemma3_text`)."""
    return model_type.becomes(str(model_type.value).removesuffix("_text")) if model_type.known else UNKNOWN


def _parameters(reader: Reader) -> Setting[int]:
    """An estimate: 12 h^2 per layer plus the embeddings; mixtures of experts and odd shapes stay unknown."""
    hidden = reader.integer("hidden_size", "d_model", "n_embd", "text_config.hidden_size")
    layers = reader.integer("num_hidden_layers", "num_layers", "n_layer", "text_config.num_hidden_layers")
    vocab = reader.integer("vocab_size", "text_config.vocab_size")
    if hidden.value is None or layers.value is None or reader.has("num_local_experts", "num_experts", "n_routed_experts"):
        return UNKNOWN
    count_ = 12 * layers.value * hidden.value**2 + (vocab.value or 0) * hidden.value
    return Setting(count_, Origin.DERIVED, hidden.at, None, "estimated from layers, width and vocabulary")


def _quantization(reader: Reader) -> Fields:
    method = reader.text("quantization_config.quant_method")
    four, eight = reader.flag("quantization_config.load_in_4bit"), reader.flag("quantization_config.load_in_8bit")
    if four.value:
        return {
            "quantization": four.becomes("bnb4"),
            "quant_compute_dtype": reader.dtype("quantization_config.bnb_4bit_compute_dtype", default="fp32", note="BitsAndBytesConfig's default"),
            "quant_storage_dtype": reader.dtype("quantization_config.bnb_4bit_quant_storage"),
            "quant_type": reader.text("quantization_config.bnb_4bit_quant_type", default="fp4", note="BitsAndBytesConfig's default"),
        }
    if eight.value:
        return {"quantization": eight.becomes("bnb8")}
    if method.known:
        name = str(method.value).lower()
        return {"quantization": method.becomes(name if name in ("gptq", "awq", "hqq") else "other")}
    return {}


DIALECT = Dialect(title="Hugging Face model config", role=Role.MODEL, version="transformers 5.24", claim=claim, lift=lift)
