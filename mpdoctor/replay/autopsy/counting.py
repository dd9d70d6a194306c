"""Counting what matters in a tensor, by integer arithmetic on the bits of its values.

Every piece costs two reductions (signed and unsigned maximum of the bits). They give the largest
magnitude exactly and say whether anything in the piece is non-finite or above fp16's range; only then
is the piece counted value by value. Zeros, subnormals and the like come from a histogram of exponents:
over all values where the checkpoint is small, over one run of values in each piece where it is large.
The runs are gathered over many pieces, because a histogram's fixed cost is that of reading 50 KB.
"""

from __future__ import annotations

import math
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from mpdoctor.replay.autopsy.bits import FP16_INFINITE_FROM, FP16_ZERO_BELOW_EXPONENT, Layout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE = 512
"""In a sampled tensor one value in this many is counted: a run of neighbours in each piece, at a place that differs from piece to piece."""
_LEAST_RUN = 64
_GATHERED = 1 << 15
_STRIDE = 7919 * 64
"""Distance between the places of two runs; with a prime factor, so that rows of a matrix do not repeat their columns."""


class Counter:
    """Judges one tensor, piece by piece in storage order; `finish` must follow the last piece.

    Args:
        layout: bit layout of the values.
        sample: whether exponents are counted in a sample instead of in all values.
    """

    def __init__(self, layout: Layout, *, sample: bool) -> None:
        import numpy as np

        self.layout = layout
        self.sample = sample
        self.position = 0
        self.nans = self.infs = self.above_fp16 = 0
        self.first: int | None = None
        self.largest = 0
        self.counted = self.zeros = 0
        self._unsigned, self._signed = np.dtype(layout.unsigned), np.dtype(layout.signed)
        self._maximum = np.maximum.reduce
        self._fp16_limit = _fp16_limit(layout)
        self._counts: Any = None
        self._gathered: list[Any] = []
        self._gathered_size = 0

    def add(self, piece: memoryview | bytes | bytearray) -> None:
        """Judge the next piece."""
        import numpy as np

        values = np.frombuffer(piece, self._unsigned)
        if values.size == 0:
            return
        mask = self.layout.magnitude_mask
        highest, highest_bits = int(self._maximum(values.view(self._signed))), int(self._maximum(values))
        # The signed maximum is the largest positive number; the unsigned one, if its sign bit is set, the largest negative.
        largest = max(highest, highest_bits & mask if highest_bits > mask else 0)
        if largest >= self.layout.nonfinite_from:
            largest = self._count_nonfinite(values)
        elif largest >= self._fp16_limit:
            self.above_fp16 += int(np.count_nonzero((values & mask) >= self._fp16_limit))
        self.largest = max(self.largest, largest)
        if self.sample:
            self._gather(values)
        else:
            self._count_exponents(values)
        self.position += values.size

    def finish(self) -> None:
        """Count what was gathered and not yet counted."""
        import numpy as np

        if self._gathered:
            self._count_exponents(np.concatenate(self._gathered))
            self._gathered, self._gathered_size = [], 0

    def _gather(self, values: NDArray[np.unsignedinteger[Any]]) -> None:
        count = min(values.size, max(values.size // SAMPLE, _LEAST_RUN))
        start = self.position // values.size * _STRIDE % (values.size - count + 1)
        self._gathered.append(values[start : start + count].copy())  # the buffer behind `values` is used again
        self._gathered_size += count
        if self._gathered_size >= _GATHERED:
            self.finish()

    def _count_nonfinite(self, values: NDArray[np.unsignedinteger[Any]]) -> int:
        """Count a piece that has NaN or infinity; returns the largest finite magnitude's bits."""
        import numpy as np

        layout = self.layout
        magnitudes = values & layout.magnitude_mask
        bad = magnitudes >= layout.nonfinite_from
        count = int(np.count_nonzero(bad))
        infinities = int(np.count_nonzero(magnitudes == layout.infinity)) if layout.infinity is not None else 0
        self.infs += infinities
        self.nans += count - infinities
        if self.first is None:
            self.first = self.position + int(bad.argmax())
        magnitudes[bad] = 0
        if int(magnitudes.max()) >= self._fp16_limit:
            self.above_fp16 += int(np.count_nonzero(magnitudes >= self._fp16_limit))
        return int(magnitudes.max())

    def _count_exponents(self, values: NDArray[np.unsignedinteger[Any]]) -> None:
        import numpy as np

        layout = self.layout
        magnitudes = values & layout.magnitude_mask
        self.counted += values.size
        self.zeros += values.size - int(np.count_nonzero(magnitudes))
        exponents = (magnitudes >> layout.significand_bits).astype(np.int64)
        counts = np.bincount(exponents, minlength=1 << layout.exponent_bits)
        self._counts = counts if self._counts is None else self._counts + counts

    @cached_property
    def histogram(self) -> list[int]:
        """Counted values by exponent field; empty when nothing was counted. Ask only after `finish`."""
        return [] if self._counts is None else self._counts.tolist()

    @property
    def amax(self) -> float:
        """Largest finite magnitude."""
        return self.layout.value(self.largest)

    @property
    def subnormals(self) -> int:
        """Counted values below the dtype's smallest normal number, zeros not included."""
        return self.histogram[0] - self.zeros if self.histogram else 0

    def zero_in_fp16(self) -> int:
        """Counted values that are not zero and become zero in fp16."""
        field = FP16_ZERO_BELOW_EXPONENT + self.layout.bias
        return sum(self.histogram[:field]) - self.zeros if self.histogram and field > 0 else 0

    def unmoved(self, lr: float) -> int:
        """Counted values w with fl(w + lr) = w: half of the spacing at w is more than `lr`."""
        if lr <= 0:
            return 0
        layout = self.layout
        # Spacing is 2^(e - significand_bits) for exponent e.
        first = math.floor(math.log2(lr)) + 1 + layout.significand_bits + 1 + layout.bias
        top = layout.nonfinite_from >> layout.significand_bits
        return sum(self.histogram[max(first, 1) : top])

    def median_lr(self) -> float | None:
        """The smallest step that moves half of the values that are not zero."""
        layout = self.layout
        top = layout.nonfinite_from >> layout.significand_bits
        counts = self.histogram[: top + (layout.infinity is None)]
        total = sum(counts) - self.zeros
        if total <= 0:
            return None
        seen = -self.zeros
        for field, count in enumerate(counts):
            seen += count
            if seen >= total / 2:
                return float(2.0 ** (max(field, 1) - layout.bias - layout.significand_bits - 1))
        return None


@cache
def _fp16_limit(layout: Layout) -> int:
    return layout.pattern_from(FP16_INFINITE_FROM)
