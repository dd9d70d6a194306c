"""What the autopsy costs: processor time against reading the same bytes with one reduction, and peak memory.

Run by hand for the numbers: `MPDOCTOR_BENCH_GB=3 pytest tests/bench/test_autopsy_cost.py -s`. In the suite it is a smoke on a
small checkpoint with a bound that a busy machine keeps, too.

The baseline reads every byte of every tensor through one buffer of the same size (`os.preadv`) and takes one `numpy.max` of it.
"""

from __future__ import annotations

import json
import os
import statistics
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from mpdoctor.replay.autopsy import autopsy
from mpdoctor.replay.autopsy.stream import PIECE_BYTES
from mpdoctor.replay.checkpoints import Checkpoint, open_checkpoint

GIGABYTES = float(os.environ.get("MPDOCTOR_BENCH_GB", "0.3"))
ROUNDS = 9


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """Four safetensors shards, half fp32 and half bf16, of 4096 x 1024 normal weights."""
    folder = tmp_path_factory.mktemp("large")
    wide = np.random.default_rng(0).standard_normal(4 << 20, dtype=np.float32) * np.float32(0.02)
    narrow = (wide.view(np.uint32) >> 16).astype(np.uint16)
    weight_map = {}
    for shard in range(1, 5):
        values, dtype = (wide, "F32") if shard < 3 else (narrow, "BF16")
        name = f"model-{shard:05d}-of-00004.safetensors"
        count = max(1, round(GIGABYTES * 1e9 / 4 / values.nbytes))
        header = {
            f"layers.{shard}.{i}.weight": {"dtype": dtype, "shape": [4096, 1024], "data_offsets": [i * values.nbytes, (i + 1) * values.nbytes]}
            for i in range(count)
        }
        weight_map |= dict.fromkeys(header, name)
        text = json.dumps(header).encode()
        with (folder / name).open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for _ in range(count):
                file.write(values.tobytes())
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return open_checkpoint(folder)


def read_with_a_reduction(checkpoint: Checkpoint) -> None:
    buffer = bytearray(PIECE_BYTES)
    view = memoryview(buffer)
    for tensor in checkpoint.tensors:
        dtype = np.float32 if tensor.dtype == "float32" else np.int16
        file, offset, left = os.open(tensor.file, os.O_RDONLY), tensor.offset, tensor.extent
        while left:
            got = os.preadv(file, [view[: min(left, PIECE_BYTES)]], offset)
            np.frombuffer(buffer, dtype, got // tensor.item_bytes).max()
            offset, left = offset + got, left - got
        os.close(file)


@pytest.mark.bench
def test_processor_time(checkpoint: Checkpoint) -> None:
    ways = {"read": read_with_a_reduction, "autopsy": autopsy}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS + 1):  # interleaved: what else the machine does hits both alike; the first round fills the page cache
        for name, way in ways.items():
            started = time.process_time()
            way(checkpoint)
            times[name].append(time.process_time() - started)
    ratio = statistics.median(b / a for a, b in zip(times["read"][1:], times["autopsy"][1:], strict=True))
    size = sum(t.extent for t in checkpoint.tensors) / 1e9
    shown = {name: statistics.median(values[1:]) / size * 1000 for name, values in times.items()}
    print(f"\n{size:.1f} GB: read and reduce {shown['read']:.0f} ms/GB, autopsy {shown['autopsy']:.0f} ms/GB: {ratio:.2f} x")
    assert ratio < 4, "by hand, on a quiet machine, it must be below 1.3"


@pytest.mark.bench
def test_peak_memory(checkpoint: Checkpoint) -> None:
    # The kernel's own high-water mark of this program: ru_maxrss would include the process that started it.
    script = (
        "import sys\nfrom pathlib import Path\nfrom mpdoctor.replay.autopsy import autopsy\nfrom mpdoctor.replay.checkpoints import open_checkpoint\n"
        "assert autopsy(open_checkpoint(Path(sys.argv[1]))).tensors\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(checkpoint.path)], capture_output=True, text=True, check=True)
    peak = int(done.stdout) * 1024
    print(f"\npeak resident memory {peak / 1e6:.0f} MB")
    assert peak < 100e6
