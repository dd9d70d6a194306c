"""What a user reads, and what a program reads, for every machine of the fixtures."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

import mpdoctor.report
from mpdoctor.gpu.examine import examine
from mpdoctor.gpu.probe import probe
from mpdoctor.report.formats import json as json_format
from mpdoctor.report.formats import text
from mpdoctor.report.renderer import RenderOptions
from tests.gpu.conftest import FIXTURES, HANGS, MACHINES, QUIET_LOG, machine_names, spec_names

SCHEMA = json.loads((Path(mpdoctor.report.__file__).parent / "schema" / "report-1.json").read_text(encoding="utf-8"))

SHARES_MEMORY = ("gb10", "jetson_thor", "orin")
WITH_XIDS = ("a100_sick", "eight_one_lost", "one_lost")


def shown(machine) -> str:
    report = examine(machine)
    assert not report.crashes, report.crashes[0].traceback
    document = json.loads(json_format.render(report, RenderOptions()))
    jsonschema.validate(document, SCHEMA)
    document["mpdoctor"] = "VERSION"
    document["checklist"] = {entry["cause"]: entry["standing"] for entry in document["checklist"]}  # the words are tested with the causes
    compact = json.dumps(document, indent=1, ensure_ascii=False).replace(str(FIXTURES), "fixtures/gpu")
    for _ in range(2):  # short objects and lists on one line each
        compact = re.sub(r"([\[{])\n\s*([^\[\]{}]{0,150}?)\n\s*([\]}])", lambda m: m[1] + re.sub(r"\n\s*", " ", m[2]) + m[3], compact)
    return text.render(report, RenderOptions(width=80)) + "\n" + compact


@pytest.mark.parametrize("spec", spec_names())
def test_machines_with_an_nvidia_driver(spec, read, snapshot):
    log = FIXTURES / "kernel_log" / "xids.log" if spec in WITH_XIDS else QUIET_LOG
    assert shown(read(spec, root="spark" if spec in SHARES_MEMORY else "old_xeon", limit=3 if spec in HANGS else 60, log=log)) == snapshot


@pytest.mark.parametrize("machine", machine_names())
def test_machines_of_other_makers(machine, snapshot):
    assert shown(probe(root=MACHINES / machine, environ={})) == snapshot
