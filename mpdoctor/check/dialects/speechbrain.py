"""SpeechBrain's HyperPyYAML. Defaults: SpeechBrain 1.0 of 2026.

`!ref <name>` stands for another key. With several optimizers (`model_opt_class`, `wav2vec_opt_class`) no learning rate is the run's, and none
is judged. SpeechBrain unscales before it clips, and clips at 5 unless told otherwise.
"""

from __future__ import annotations

import re

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, optimizer_settings, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document, Node
from mpdoctor.core.training import Origin, Setting, TrainingConfig

VERSION = "SpeechBrain 1.0"
MARKS = ("number_of_epochs", "N_epochs", "number_of_steps", "epoch_counter", "opt_class", "max_grad_norm", "grad_accumulation_factor")
_TAGS = re.compile(r"!(?:new|name|apply):speechbrain\.|!ref <\w+>")
_OPTIMIZER = re.compile(r"^(\w+): *!name:(?:torch\.optim|speechbrain\.nnet\.\w+|bitsandbytes\.optim)\.(\w+)", re.MULTILINE)
_REFERENCE = re.compile(r"<(\w+)>")


def claim(document: Document) -> float:
    """HyperPyYAML's tags, and one of the keys that only training has."""
    if document.syntax != "yaml" or not _TAGS.search(document.text):
        return 0
    found = count(document, MARKS) + bool(_OPTIMIZER.search(document.text))
    return 80 + found if found else 0


def lift(reader: Reader) -> TrainingConfig:
    """The hyper-parameters that SpeechBrain's Brain reads, and the optimizer where there is one."""
    reader = Reader(_resolved(reader.document), siblings=reader.siblings, version=reader.version)
    optimizers = {match[1]: match[2] for match in _OPTIMIZER.finditer(reader.document.text)}
    key = next(iter(optimizers)) if len(optimizers) == 1 else ""
    return TrainingConfig(
        dialect="speechbrain",
        files=(reader.path,),
        **joined(
            _precision(reader),
            _optimizer(reader, key, optimizers.get(key, "")),
            clipping(reader.number("max_grad_norm", default=5.0, note=VERSION)),
        ),
        epochs=reader.number("number_of_epochs", "N_epochs"),
        micro_batch=reader.integer("batch_size"),
        accumulation_steps=reader.integer("grad_accumulation_factor", default=1, note=VERSION),
        domain=reader.constant("speech", VERSION),
        compile=reader.flag("compile"),
    )


def _optimizer(reader: Reader, key: str, name: str) -> Fields:
    node = reader.node(key) if key else None
    if node is None:
        return {}
    fields = optimizer_settings(Setting(name, Origin.EXPLICIT, node.span(key), name))
    return fields | {
        "lr": reader.number(f"{key}.lr"),
        "eps": reader.number(f"{key}.eps", default=1e-8, note="torch.optim"),
        "weight_decay": reader.number(f"{key}.weight_decay"),
    }


def _precision(reader: Reader) -> Fields:
    """`precision`, or `auto_mix_prec` of older recipes. The scaler is torch's, on CUDA and for fp16 alone."""
    older = reader.flag("auto_mix_prec")
    word = older.becomes("fp16") if older.value else reader.text("precision", default="fp32", note=VERSION)
    if word.value == "fp16":
        return autocast(word, "fp16") | torch_scaler(word) | {"fp16_requested": word.becomes(True)}
    if word.value == "bf16":
        return autocast(word, "bf16") | {"bf16_requested": word.becomes(True)}
    return fp32(word) if word.value == "fp32" else {}


def _resolved(document: Document) -> Document:
    """The document with every `!ref <name>` replaced by what stands there; expressions (`<a> * 2`) stay unread."""
    top = document.root.mapping

    def follow(node: Node, depth: int) -> Node:
        if node.is_mapping and depth < 3:
            return node.with_value({key: follow(child, depth + 1) for key, child in node.mapping.items()})
        seen = 0
        while isinstance(node.value, str) and (match := _REFERENCE.fullmatch(node.value.strip())) and match[1] in top and seen < 10:
            node, seen = top[match[1]], seen + 1
        return node

    return document.with_root(follow(document.root, 0))


DIALECT = Dialect(title="SpeechBrain", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
