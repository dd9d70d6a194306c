"""`--fix --gpu NAME`: fp16 becomes bf16 where a rule says that fp16 is wrong, the card has bf16, and the files say so in words that are known."""

from __future__ import annotations

import pytest

from mpdoctor.check.pipeline import Options, check_files
from mpdoctor.check.repair import repairs

HF = "output_dir: out\nmodel_name_or_path: google-t5/t5-3b\nlearning_rate: 1.0e-4\n"
LIGHTNING = "trainer:\n  precision: {}  # speed\n  max_epochs: 3\n  devices: 1\nmodel:\n  class_path: x.T5\n"
ACCELERATE = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: {}\nnum_processes: 8\n"
DEEPSPEED = (
    '{{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {{"stage": 2}},\n "fp16": {{"enabled": {}}},\n "bf16": {{"enabled": {}}}}}\n'
)


@pytest.fixture
def fixed(tmp_path, cards):
    """The files after `--fix` for a card, by name; a second one must change nothing."""

    def fix(gpu: str = "a100", **files: str) -> dict[str, str]:
        paths = {name: tmp_path / name.replace("__", ".") for name in files}
        for name, path in paths.items():
            path.write_text(files[name])
        options = Options(gpus=tuple(cards(name) for name in gpu.split(",") if name))
        for _ in range(2):
            result = check_files([str(path) for path in paths.values()], options)
            planned = repairs(result.findings, result.documents)
            for repair in planned:
                repair.write()
        assert planned == []
        return {name: path.read_text() for name, path in paths.items()}

    return fix


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (HF + "fp16: true # fast\n", HF + "bf16: true # fast\n"),
        (HF + "'fp16' : True\n", HF + "'bf16' : True\n"),
        (HF + "fp16: true\nbf16: false\n", HF + "fp16: false\nbf16: true\n"),
        (LIGHTNING.format("16-mixed"), LIGHTNING.format("bf16-mixed")),
        (LIGHTNING.format("16"), LIGHTNING.format("bf16-mixed")),
        (ACCELERATE.format("fp16"), ACCELERATE.format("bf16")),
        (ACCELERATE.format("'fp16'"), ACCELERATE.format("'bf16'")),
    ],
)
def test_the_files_words_change_and_nothing_else(fixed, before, after):
    assert fixed(train__yaml=before) == {"train__yaml": after}


def test_all_files_of_a_run_change_together(fixed):
    after = fixed(train__yaml=HF + "fp16: true\n", ds__json=DEEPSPEED.format("true", "false"), acc__yaml=ACCELERATE.format("fp16"))
    assert after == {
        "train__yaml": HF + "bf16: true\n",
        "ds__json": DEEPSPEED.format("false", "true"),
        "acc__yaml": ACCELERATE.format("bf16"),
    }


def test_what_says_auto_follows(fixed):
    files = {"train__yaml": HF + "fp16: true\n", "ds__json": DEEPSPEED.format('"auto"', '"auto"')}
    assert fixed(**files) == files | {"train__yaml": HF + "bf16: true\n"}


@pytest.mark.parametrize(
    "files",
    [
        {"train__yaml": HF + "fp16: true\nbf16: ${oc.env:BF16}\n"},
        {"train__yaml": HF + "fp16: true\ntorch_dtype: float16\n"},
        {"train__yaml": HF + "fp16: true\n", "ds__json": '{"zero_optimization": {"stage": 2}, "fp16": {"enabled": "auto"}}\n'},
        {"train__yaml": LIGHTNING.format("16-true")},
    ],
)
def test_what_is_tied_to_fp16_otherwise_is_left_to_the_user(fixed, files):
    assert fixed(**files) == files


@pytest.mark.parametrize("gpu", ["", "v100", "a100,v100", "m2"])
def test_only_where_every_named_card_has_bf16(fixed, gpu):
    assert fixed(gpu, train__yaml=HF + "fp16: true\n") == {"train__yaml": HF + "fp16: true\n"}
