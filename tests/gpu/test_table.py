"""The table of GPUs obeys the capability rules, row by row."""

import re

import pytest

from mpdoctor.core.device import Support
from mpdoctor.gpu.capability import amd, nvidia
from mpdoctor.gpu.table import cards, rows

BF16 = {Support.TENSOR_CORES: "native", Support.NATIVE: "native", Support.EMULATED: "emulated", Support.STORAGE: "storage", Support.NONE: "no"}


def yes(support: Support) -> str:
    return "yes" if support is Support.TENSOR_CORES else "no"


@pytest.mark.parametrize(("row", "card"), [pytest.param(row, card, id=card.name) for row, card in zip(rows(), cards(), strict=True)])
def test_each_row_says_what_the_rules_say(row, card):
    formats = card.formats
    assert row["fp16_tc"] == yes(formats.fp16)
    assert row["bf16"] == BF16[formats.bf16]
    assert (row["tf32"], row["fp8"], row["fp4"]) == (yes(formats.tf32), yes(formats.fp8), yes(formats.fp4))


def test_each_row_has_a_source_and_sane_values():
    for row in rows():
        assert len(row["source"]) > 5, row
        assert all(1 <= int(size) <= 512 for size in row["memory_gib"].split("|")), row
        pattern = {"nvidia": r"\d+\.\d", "amd": r"gfx[0-9a-f]+", "intel": "xpu", "apple": "mps"}[row["vendor"]]
        assert re.fullmatch(pattern, row["cc"]), row


def test_generation_and_architecture_agree():
    for card in cards():
        if card.vendor == "nvidia":
            assert nvidia.architecture(card.capability) == card.architecture, card
        if card.vendor == "amd":
            assert amd.architecture(card.generation) == card.architecture, card


def test_no_name_is_there_twice():
    names = [card.name for card in cards()]
    assert len(names) == len(set(names)) > 190
