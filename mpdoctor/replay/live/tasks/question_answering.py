"""The place of an answer in a text.

Rows: `question`, `context` and `answers` (`{"text": [...], "answer_start": [...]}`), as SQuAD has them; or `input_ids` with `start_positions`
and `end_positions`. An answer that the cut takes away is at position 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.task import Batch, Features, Task
from mpdoctor.replay.live.tasks.causal_lm import random_text

_ENDS = ("start_positions", "end_positions")


def features(preprocessing: Preprocessing, sample: Sample) -> Features:
    """Token ids of question and text, and the tokens at which the answer begins and ends."""
    row = preprocessing.tokenised(sample)
    if row is not None:
        ends = [sample.values.get(name) for name in _ENDS]
        if not all(isinstance(end, int) for end in ends):
            raise sample.refused("input_ids without start_positions and end_positions")
        return row | dict(zip(_ENDS, ends, strict=True))
    question, context = sample.values.get("question"), sample.values.get("context")
    if not isinstance(question, str) or not isinstance(context, str):
        raise sample.refused("no question and context")
    if not getattr(preprocessing.tokenizer, "is_fast", False):
        raise sample.refused("this tokenizer cannot tell where a token stands in its text", "Give tokenised rows.")
    encoded = preprocessing.tokenizer(question, context, truncation="only_second", max_length=preprocessing.limit, return_offsets_mapping=True)
    first, last = _characters(sample, context)
    inside = [
        i
        for i, (place, (begin, end)) in enumerate(zip(encoded.sequence_ids(), encoded["offset_mapping"], strict=True))
        if place == 1 and begin < last and end > first
    ]
    whole = bool(inside) and encoded["offset_mapping"][inside[-1]][1] >= last
    made = {name: value for name, value in encoded.items() if name != "offset_mapping" and preprocessing.takes(name)}
    return made | {_ENDS[0]: inside[0] if whole else 0, _ENDS[1]: inside[-1] if whole else 0}


def _characters(sample: Sample, context: str) -> tuple[int, int]:
    """Where the first answer begins and ends in the text; (0, 0) for a question without one."""
    answers: Any = sample.values.get("answers", sample.values.get("answer"))
    if isinstance(answers, list) and answers and isinstance(answers[0], dict):
        answers = {"text": [a.get("text") for a in answers], "answer_start": [a.get("answer_start") for a in answers]}
    if not isinstance(answers, dict):
        raise sample.refused("no answers", 'They have the form {"text": ["..."], "answer_start": [17]}.')
    texts, starts = ([v] if not isinstance(v, list) else v for v in (answers.get("text", []), answers.get("answer_start", [])))
    if not texts:
        return 0, 0
    text, start = texts[0], starts[0] if starts else None
    if not isinstance(text, str) or not isinstance(start, int) or not 0 <= start <= len(context):
        raise sample.refused(f"the answer {text!r} at {start!r} is not in the context")
    return start, start + len(text)


def collate(preprocessing: Preprocessing, rows: Sequence[Features]) -> Batch:
    """Padded rows with the answers' places."""
    return preprocessing.padded_text(rows) | {name: torch.tensor([row[name] for row in rows]) for name in _ENDS}


def made_up(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Random tokens and places."""
    batch = random_text(preprocessing, size, generator)
    length = batch["input_ids"].shape[1]
    return batch | {name: torch.randint(0, length, (size,), generator=generator) for name in _ENDS}


TASK = Task(name="question answering", heads=("ForQuestionAnswering",), features=features, collate=collate, made_up=made_up)
