"""The pages of `mpdoctor explain`."""

from __future__ import annotations

import json
import re

import pytest

from mpdoctor import encyclopedia
from mpdoctor.core.jsonable import to_json
from mpdoctor.core.numerics import FORMATS


@pytest.mark.parametrize("name", encyclopedia.names())
def test_every_name_has_a_page(name: str) -> None:
    page = encyclopedia.look_up(name)
    assert page is not None
    assert page.markdown.startswith("# ")
    assert page.markdown.endswith("\n")
    json.loads(to_json(page.facts))


def test_the_contents_name_everything() -> None:
    markdown = encyclopedia.contents().markdown
    aliases = {alias for number_format in FORMATS for alias in number_format.aliases}
    for name in encyclopedia.names():
        assert name in aliases or re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", markdown), name


def test_a_cause_lists_who_speaks_for_it() -> None:
    page = encyclopedia.look_up("loss-scaling")
    assert page is not None
    assert "- `CFG2" in page.markdown
    assert page.facts["order"] == 2


def test_a_format_states_its_numbers() -> None:
    page = encyclopedia.look_up("half")
    assert page is not None
    for number in ("65504", "6.104e-05", "5.96e-08", "0.0009766", "2048"):
        assert number in page.markdown


@pytest.mark.parametrize(
    ("number", "fp16", "remark"),
    [("1e-8", 0.0, "flushed to zero"), ("70000", "inf", "above 65504"), ("1", 1.0, "exact"), ("1e-6", 17 * 2.0**-24, "subnormal")],
)
def test_a_number_is_shown_in_every_format(number: str, fp16: object, remark: str) -> None:
    page = encyclopedia.look_up(number)
    assert page is not None
    assert page.facts["becomes"]["fp16"] == fp16
    assert remark in next(line for line in page.markdown.splitlines() if line.startswith("| fp16"))


@pytest.mark.parametrize("name", ["", "nonsense", "nan", "inf", "1e999"])
def test_anything_else_has_no_page(name: str) -> None:
    assert encyclopedia.look_up(name) is None


def test_a_shared_slug_shows_every_page() -> None:
    page = encyclopedia.look_up("clip-before-unscale")
    assert page is not None
    assert [rule["kind"] for rule in page.facts["rules"]] == ["script", "detector"]


def test_topics_speak_of_commands_and_options_that_exist() -> None:
    from mpdoctor.cli.app import COMMANDS

    for name in ("verdict", "limits", "exit-codes", "json", "python", "recipe"):
        page = encyclopedia.look_up(name)
        assert page is not None
        examples = "\n".join(re.findall(r"```\n(.*?)```", page.markdown, re.DOTALL))
        assert set(re.findall(r"^mpdoctor (\w+)", examples, re.MULTILINE)) <= set(COMMANDS)
