"""The autopsy of a whole checkpoint: every floating-point tensor once, in the order in which it lies on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from mpdoctor.replay.autopsy.bits import COMPONENT, layout_of
from mpdoctor.replay.autopsy.counting import Counter
from mpdoctor.replay.autopsy.layout import dense, gathered, gathered_bytes, index_of, kept_shape
from mpdoctor.replay.autopsy.result import AutopsyResult, TensorStats
from mpdoctor.replay.autopsy.stream import Stream
from mpdoctor.replay.autopsy.summaries import dtype_story, module_stats, optimizer_summary, scaler_state
from mpdoctor.replay.checkpoints import Checkpoint, Problem, ProblemKind, Role, TensorEntry, settings_from
from mpdoctor.replay.checkpoints.files import Refused

Progress = Callable[[int, int, str], None]
"""Called with bytes done, bytes in all, and the file being read."""

EXACT_BYTES = 256 << 20
"""Up to this many bytes of tensors all values are counted; above, large tensors are sampled."""

EXACT_TENSOR = 1 << 16
"""Tensors with up to this many values are counted value by value in any checkpoint."""

GATHER_BYTES = 256 << 20
"""Largest stretch that is read at once for a tensor whose elements lie scattered."""

_Identity = tuple[Path, int, int, str, str]

_MODEL_AND_OPTIMIZER = frozenset(Role) - {Role.RNG, Role.STEP, Role.SCALER}


def autopsy(checkpoint: Checkpoint, *, progress: Progress | None = None) -> AutopsyResult:
    """Judge every stored floating-point tensor.

    Reads each byte once, in pieces of 512 KiB, whatever the checkpoint's size. Files that vanish,
    shrink or fail while they are read become problems; the others are still judged.
    """
    wanted = [t for t in checkpoint.tensors if t.role in _MODEL_AND_OPTIMIZER and layout_of(t.dtype) is not None]
    lr = _step_size(checkpoint)
    total = sum(t.extent for t in wanted)
    keyed = [(tensor, _identity(tensor)) for tensor in wanted]
    stats: dict[_Identity, TensorStats | None] = {}
    problems: list[Problem] = []
    with Stream() as stream:
        done = 0
        for tensor, key in sorted(keyed, key=lambda pair: (str(pair[1][0]), pair[1][1])):
            if key not in stats:
                stats[key] = _judge(tensor, stream, lr, sample=total > EXACT_BYTES, problems=problems)
            done += key[2]
            if progress is not None:
                progress(done, total, tensor.file.name)
        bytes_read = stream.bytes_read
    found = tuple(judged if judged.entry is t else replace(judged, entry=t) for t, key in keyed if (judged := stats[key]) is not None)
    return AutopsyResult(
        tensors=found,
        modules=module_stats(found),
        optimizer=optimizer_summary(checkpoint, found),
        scaler=scaler_state(checkpoint),
        dtypes=dtype_story(checkpoint),
        lr=lr,
        bytes_read=bytes_read,
        unjudged=sum(t.role in _MODEL_AND_OPTIMIZER for t in checkpoint.tensors) - len(found),
        problems=tuple(_unique(problems)),
    )


def _identity(tensor: TensorEntry) -> _Identity:
    """Tied weights lie at the same place and are judged once; values inside a pickle have no place."""
    return (*tensor.place, tensor.dtype, tensor.name if tensor.inline is not None else "")


def _judge(tensor: TensorEntry, stream: Stream, lr: float | None, *, sample: bool, problems: list[Problem]) -> TensorStats | None:
    layout = layout_of(tensor.dtype)
    assert layout is not None
    parts = 2 if tensor.dtype in COMPONENT else 1
    counter = Counter(layout, sample=sample and tensor.numel > EXACT_TENSOR)
    lies_dense = dense(tensor.shape, tensor.strides)
    if not lies_dense and max(tensor.extent, gathered_bytes(tensor)) > GATHER_BYTES:
        text = f"{tensor.name!r}: a view with gaps or overlaps of {max(tensor.extent, gathered_bytes(tensor)):,} bytes, which was not judged"
        problems.append(Problem(kind=ProblemKind.NOT_JUDGED, file=tensor.file, text=text, tensor=tensor.name))
        return None
    try:
        for piece in _pieces(tensor, stream, lies_dense=lies_dense):
            counter.add(piece)
        counter.finish()
    except Refused as refused:
        problems.append(replace(refused.problem, tensor=tensor.name))
        return None
    first = (
        None
        if counter.first is None
        else index_of(counter.first // parts, *((tensor.shape, tensor.strides) if lies_dense else (kept_shape(tensor), None)))
    )
    return TensorStats(
        entry=tensor, numel=counter.position, nans=counter.nans, infs=counter.infs, first_nonfinite=first, amax=counter.amax,
        above_fp16=counter.above_fp16, counted=counter.counted, zeros=counter.zeros, subnormals=counter.subnormals,
        zero_in_fp16=counter.zero_in_fp16(), unmoved=None if lr is None else counter.unmoved(lr), median_lr=counter.median_lr(),
    )  # fmt: skip


def _pieces(tensor: TensorEntry, stream: Stream, *, lies_dense: bool) -> Iterator[memoryview | bytes]:
    if tensor.inline is not None:
        yield tensor.inline
    elif lies_dense:
        yield from stream.pieces(tensor.file, tensor.offset, tensor.extent, tensor.item_bytes)
    else:
        yield gathered(stream.whole(tensor.file, tensor.offset, tensor.extent), tensor)


def _step_size(checkpoint: Checkpoint) -> float | None:
    """The run's learning rate: the configured one, since the last one of a schedule is often 0."""
    value = settings_from(checkpoint).get("learning_rate")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _unique(problems: Iterable[Problem]) -> list[Problem]:
    """One problem per file and text: a file that vanished fails for each of its tensors."""
    seen: dict[tuple[Path, str], Problem] = {}
    for problem in problems:
        seen.setdefault((problem.file, problem.text), problem)
    return list(seen.values())
