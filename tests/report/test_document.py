"""The JSON contract: schema `mpdoctor.report/1`."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest

from mpdoctor.core.cause import Standing
from mpdoctor.core.device import Support
from mpdoctor.core.gate import Outcome
from mpdoctor.core.location import Phase
from mpdoctor.core.report import ExperimentOutcome, Report, SymptomId
from mpdoctor.report.document import document
from mpdoctor.report.renderer import RenderOptions, load

SCHEMA = json.loads(files("mpdoctor.report").joinpath("schema/report-1.json").read_text(encoding="utf-8"))


def parsed(report: Report) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(load("json").render(report, RenderOptions()), parse_constant=refuse)


def test_every_report_follows_the_schema(report: Report) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(parsed(report))


def test_the_schema_rejects_another_outcome(reports: dict[str, Report]) -> None:
    broken = document(reports["healthy"]) | {"outcome": "fine"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(broken)


def undocumented(value: object, schema: dict, path: str) -> list[str]:
    """Keys of `value` that the schema does not name."""
    schema = schema | SCHEMA["$defs"].get(schema.get("$ref", "").rpartition("/")[2], {})
    options = [s for s in schema.get("anyOf", []) if s.get("type") != "null"]
    if options and isinstance(value, dict):
        return undocumented(value, options[0], path)
    if isinstance(value, list):
        return [key for item in value for key in undocumented(item, schema.get("items", {}), f"{path}[]")]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    known = dict(schema["properties"])
    for part in schema.get("allOf", []):
        known |= SCHEMA["$defs"][part["$ref"].rpartition("/")[2]]["properties"]
    found = [f"{path}.{key}" for key in value if key not in known]
    return found + [key for name, item in value.items() for key in undocumented(item, known.get(name, {}), f"{path}.{name}")]


def test_every_key_is_documented(report: Report) -> None:
    assert undocumented(parsed(report), SCHEMA, "") == []


def test_an_undocumented_key_would_be_noticed(reports: dict[str, Report]) -> None:
    value = parsed(reports["overflow"])
    value["checklist"][0]["remark"] = "new"
    value["first_nonfinite"]["extra"] = 1
    assert undocumented(value, SCHEMA, "") == [".first_nonfinite.extra", ".checklist[].remark"]


@pytest.mark.parametrize(
    ("place", "values"),
    [
        (SCHEMA["properties"]["outcome"]["enum"], Outcome),
        (SCHEMA["properties"]["symptoms"]["items"]["properties"]["id"]["enum"], SymptomId),
        (SCHEMA["properties"]["experiments"]["items"]["properties"]["outcome"]["enum"], ExperimentOutcome),
        (SCHEMA["$defs"]["site"]["properties"]["phase"]["enum"], Phase),
        (SCHEMA["$defs"]["standing"]["enum"], Standing),
        (SCHEMA["$defs"]["support"]["enum"], Support),
    ],
)
def test_the_schema_lists_the_values_that_the_code_knows(place: list[str], values: type) -> None:
    assert place == [item.value for item in values]


def test_nonfinite_numbers_are_strings(reports: dict[str, Report]) -> None:
    last = parsed(reports["overflow"])["steps"][-1]
    assert (last["loss"], last["grad_norm"], last["scale"]) == ("nan", "inf", 32768.0)


def test_the_origin_names_its_place(reports: dict[str, Report]) -> None:
    origin = parsed(reports["overflow"])["first_nonfinite"]
    assert origin["location"] == "train.py:12"
    assert (origin["step"], origin["phase"], origin["module"], origin["op"]) == (3, "forward", "blocks.1.wo", "aten.mm")
    assert origin["hurts_at"]["location"] == "train.py:31"


def test_a_finding_in_a_replay_names_file_and_site(reports: dict[str, Report]) -> None:
    finding = parsed(reports["overflow"])["findings"][0]
    assert (finding["file"], finding["line"], finding["site"]["module"]) == ("train.py", 12, "blocks.1.wo")


def test_ascii_json_holds_the_same_values(reports: dict[str, Report]) -> None:
    text = load("json").render(reports["hostile"], RenderOptions(ascii=True))
    assert text.isascii()
    assert json.loads(text) == parsed(reports["hostile"])
