"""What a model's name says: its family and its size."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:[._]\d+)?)\s?([bBmM])(?![A-Za-z0-9])")
_DECIMAL = re.compile(r"(?<![0-9])(0|1(?=_[57]b))_(\d+b)")
"""`qwen2_0_5b`, `qwen3_1_7b`: names of functions cannot hold a point. (`llama3_1_8b` is version 3.1.)"""
_MIXTURE = re.compile(r"(\d+)x(\d+(?:\.\d+)?)[bB]")
_FAMILIES = (
    # The first match wins: longer names first.
    ("flan-t5", "t5"), ("flan_t5", "t5"), ("umt5", "umt5"), ("mt5", "mt5"), ("byt5", "t5"), ("codet5", "t5"), ("t5", "t5"),
    ("embeddinggemma", "gemma3"), ("gemma-3n", "gemma3n"), ("gemma3n", "gemma3n"), ("gemma-3", "gemma3"), ("gemma3", "gemma3"),
    ("gemma-4", "gemma4"), ("gemma4", "gemma4"), ("gemma-2-", "gemma2"), ("gemma2", "gemma2"), ("gemma", "gemma"),
    ("gpt-oss", "gpt_oss"), ("gpt_oss", "gpt_oss"),
    ("mixtral", "mixtral"), ("mistral", "mistral"), ("zephyr", "mistral"), ("codellama", "llama"), ("tinyllama", "llama"), ("llama", "llama"),
    ("vicuna", "llama"), ("smollm", "llama"), ("yi-", "llama"), ("deepseek", "deepseek"), ("phi", "phi"), ("falcon", "falcon"),
    ("opt-", "opt"), ("bloom", "bloom"),
    ("pythia", "gpt_neox"), ("gpt-neox", "gpt_neox"), ("gpt-neo", "gpt_neo"), ("gpt-j", "gptj"), ("gpt2", "gpt2"),
    ("mpt", "mpt"), ("olmo", "olmo"), ("baichuan", "baichuan"), ("chatglm", "chatglm"), ("glm-4.5", "glm4_moe"), ("glm-4.6", "glm4_moe"),
    ("glm", "glm"), ("internlm", "internlm"), ("command", "cohere"), ("modernbert", "modernbert"), ("deberta", "deberta"),
    ("roberta", "roberta"), ("distilbert", "distilbert"), ("electra", "electra"), ("bert", "bert"), ("bart", "bart"), ("pegasus", "pegasus"),
    ("whisper", "whisper"), ("wav2vec2", "wav2vec2"), ("hubert", "hubert"), ("clip", "clip"), ("vit", "vit"), ("sdxl", "sdxl"),
)  # fmt: skip
_SIZES = {
    # Parameters of models whose name carries no number (from their model cards).
    "t5-small": 60_000_000, "t5-base": 220_000_000, "t5-large": 770_000_000, "t5-xl": 3_000_000_000, "t5-xxl": 11_000_000_000,
    "gpt2-xl": 1_500_000_000, "gpt2-large": 774_000_000, "gpt2-medium": 355_000_000, "gpt2": 124_000_000,
    "roberta-large": 355_000_000, "bert-large": 340_000_000, "deberta": 184_000_000, "roberta": 125_000_000, "distilbert": 66_000_000,
    "electra": 110_000_000, "bert": 110_000_000, "bart-large": 406_000_000, "bart": 139_000_000, "whisper-tiny": 39_000_000,
    "whisper-base": 74_000_000, "whisper-small": 244_000_000, "whisper-medium": 769_000_000, "whisper-large": 1_550_000_000,
}  # fmt: skip
_QWEN = re.compile(r"qwen[-_]?(\d)(?:\.(\d))?")


def model_family(name: str) -> str | None:
    """The family (`t5`, `gemma2`, `llama`, ...) that a model's name or path tells, or None."""
    lowered = name.lower()
    if match := _QWEN.search(lowered):
        moe = re.search(r"-a\d+(\.\d+)?b", lowered) or "moe" in lowered
        if match[1] == "3" and match[2] == "5":
            return "qwen3_5"
        return f"qwen{match[1]}_moe" if moe else f"qwen{match[1]}"
    return next((family for part, family in _FAMILIES if part in lowered), None)


def parameter_count(name: str) -> int | None:
    """The number of parameters that a model's name tells (`7b`, `350M`, `8x7B`, `t5-base`), or None."""
    base = _DECIMAL.sub(r"\1.\2", name.rstrip("/").rsplit("/", 1)[-1])
    if match := _MIXTURE.search(base):
        return int(int(match[1]) * float(match[2]) * 1e9)
    if match := _SIZE.search(base.replace("-", " ").replace("_", " ").replace("/", " ")):
        return int(float(match[1]) * (1e9 if match[2] in "bB" else 1e6))
    return next((size for part, size in _SIZES.items() if part in base.lower()), None)
