"""GPU names as people type them, and as drivers tell them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.core.errors import UsageError
from mpdoctor.gpu.names import find, match
from mpdoctor.gpu.table import cards


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("v100", "Tesla V100"),
        ("V100-SXM2-32GB", "Tesla V100"),
        ("a10", "A10"),
        ("a10g", "A10G"),
        ("NVIDIA A10G", "A10G"),
        ("a100", "A100"),
        ("a1000", "RTX A1000"),
        ("rtx 4070 ti super", "RTX 4070 Ti SUPER"),
        ("RTX4070TiSuper", "RTX 4070 Ti SUPER"),
        ("rtx 4070 ti", "RTX 4070 Ti"),
        ("4070", "RTX 4070"),
        ("4090", "RTX 4090"),
        ("geforce rtx 4090", "RTX 4090"),
        ("1080ti", "GTX 1080 Ti"),
        ("h100-80gb", "H100"),
        ("8x H100", "H100"),
        ("2*a100", "A100"),
        ("h200 nvl", "H200"),
        ("t4", "Tesla T4"),
        ("titan x", "TITAN X"),
        ("gtx titan x", "GTX TITAN X"),
        ("rtx a4000", "RTX A4000"),
        ("quadro rtx 4000", "Quadro RTX 4000"),
        ("rtx 4000 ada", "RTX 4000 Ada"),
        ("rtx pro 6000", "RTX PRO 6000 Blackwell"),
        ("mi300x", "MI300X"),
        ("7900xtx", "RX 7900 XTX"),
        ("7900 XTX", "RX 7900 XTX"),
        ("a770", "Arc A770"),
        ("max 1550", "Data Center GPU Max 1550"),
        ("m2", "Apple M2"),
        ("orin nx", "Jetson Orin NX"),
        ("gb200", "GB200"),
        # as NVML tells them
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100 80GB PCIe", "A100"),
        ("Tesla T4", "Tesla T4"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "RTX 4090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "H100"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA L40-16Q", "L40"),
        ("NVIDIA GB10", "GB10"),
        ("Quadro RTX 6000", "Quadro RTX 6000"),
        ("AMD Instinct MI300X OAM", "MI300X"),
        ("AMD Radeon RX 7900 XTX", "RX 7900 XTX"),
        ("Intel(R) Arc(TM) A770 Graphics", "Arc A770"),
        ("NVIDIA GeForce GTX 1660 SUPER", "GTX 1660 SUPER"),
    ],
)
def test_a_name_finds_its_card(typed, name):
    assert match(typed).card.name == name


def test_every_card_is_found_by_its_own_name():
    for card in cards():
        found = find(card.name)
        assert card in found
        assert len(found) == 1 or "Ada" in "".join(other.name for other in found), card


@pytest.mark.parametrize(
    ("typed", "size"), [("h100-80gb", 80), ("a100 40GB", 40), ("A100-SXM4-80GB", 80), ("a100", None), ("t4", 16), ("a100 60gb", None)]
)
def test_a_memory_size_in_the_name_is_taken_when_it_is_on_sale(typed, size):
    assert match(typed).memory_gib == size


@pytest.mark.parametrize("typed", ["rtx 6000", "rtx 4000", "RTX 5000"])
def test_a_name_of_two_generations_is_refused_with_both(typed):
    with pytest.raises(UsageError) as told:
        match(typed)
    assert "Quadro" in told.value.message and "Ada" in told.value.message


@pytest.mark.parametrize(
    ("typed", "near"),
    [("rtx 9090", "RTX 4090"), ("4o90", "RTX 4090"), ("h10", "H100"), ("mi300z", "MI300X"), ("v1000", "Tesla V100"), ("a10x", "A10")],
)
def test_an_unknown_name_is_told_with_the_nearest(typed, near):
    with pytest.raises(UsageError) as told:
        match(typed)
    assert near in told.value.hint


@pytest.mark.parametrize("typed", ["", "gpu", "geforce", "nvidia", "80gb", "???", "8x"])
def test_what_names_no_card_finds_none(typed):
    assert find(typed) == ()


@given(st.text(max_size=40))
def test_no_text_makes_it_fail(text):
    assert isinstance(find(text), tuple)
    try:
        match(text)
    except UsageError as error:
        assert error.hint
