"""The pages of `mpdoctor explain`: rules, causes, number formats, numbers and topics, as Markdown and as plain facts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from mpdoctor.catalogue import RuleEntry, find_rules, rules
from mpdoctor.causes import all_causes
from mpdoctor.core.cause import Cause
from mpdoctor.core.jsonable import jsonable
from mpdoctor.core.numerics import FORMATS, FP32, FloatFormat, find_format


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page: Markdown for people, `facts` (plain JSON values) for programs."""

    markdown: str
    facts: dict[str, Any]


def look_up(name: str) -> Page | None:
    """The page called `name`: a cause's id, a rule's code or slug, a number format; case does not matter."""
    wanted = name.strip().lower()
    if cause := next((cause for cause in all_causes() if cause.id == wanted), None):
        return _cause_page(cause)
    if pages := [_rule_page(entry) for entry in find_rules(wanted)]:
        return (
            pages[0]
            if len(pages) == 1
            else Page(markdown="\n".join(p.markdown for p in pages), facts={"kind": "rules", "rules": [p.facts for p in pages]})
        )
    if number_format := find_format(wanted):
        return _format_page(number_format)
    if (topic := _topics().get(wanted)) is not None:
        return Page(markdown=topic, facts={"kind": "topic", "name": wanted})
    if (value := _number(wanted)) is not None:
        return _number_page(value)
    return None


def names() -> tuple[str, ...]:
    """Every name that `look_up` knows, aliases of number formats included."""
    formats = [alias for number_format in FORMATS for alias in (number_format.name, *number_format.aliases)]
    return (*(cause.id for cause in all_causes()), *(name for entry in rules() for name in (entry.code, entry.slug)), *formats, *_topics())


def contents() -> Page:
    """The list of all pages."""
    causes = "\n".join(f"- `{cause.id}`: {cause.title}" for cause in all_causes())
    formats = "\n".join(f"- `{f.name}`: {f.bits} bits, up to {f.max:.5g}" for f in FORMATS)
    entries = "\n".join(f"- `{entry.code}` {entry.slug}: {entry.doc.summary}" for entry in rules())
    topics = "\n".join(f"- `{name}`: {text.splitlines()[0].lstrip('# ')}" for name, text in _topics().items())
    chapters = {
        "How mpdoctor works": topics,
        "Causes": causes,
        "Number formats": f"{formats}\n\nAny number too: `mpdoctor explain 1e-8` shows what each format makes of it.",
        "Rules, detectors, experiments": entries,
    }
    markdown = "# What mpdoctor can explain\n\n" + "\n\n".join(f"## {title}\n\n{text}" for title, text in chapters.items()) + "\n"
    facts = {
        "kind": "contents",
        "causes": [cause.id for cause in all_causes()],
        "formats": [f.name for f in FORMATS],
        "rules": [entry.code for entry in rules()],
        "topics": list(_topics()),
    }
    return Page(markdown=markdown, facts=facts)


@cache
def _topics() -> dict[str, str]:
    """Markdown pages about mpdoctor itself, by file name."""
    folder = files("mpdoctor.topics")
    pages = sorted(item.name for item in folder.iterdir() if item.name.endswith(".md"))
    return {name.removesuffix(".md"): folder.joinpath(name).read_text(encoding="utf-8") for name in pages}


def _number(text: str) -> float | None:
    """A finite number; None for any other text."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _number_page(value: float) -> Page:
    """What each format makes of a number, and how far from it that is."""
    rows, facts = [], {}
    for f in FORMATS:
        rounded = f.round(value)
        facts[f.name] = rounded
        error = "exact" if rounded == value else f"{abs(rounded - value) / abs(value):.2g}" if value and math.isfinite(rounded) else ""
        remark = ""
        if rounded == 0 and value != 0:
            remark = "flushed to zero"
        elif not math.isfinite(rounded):
            remark = f"above {f.max:g}"
        elif 0 < abs(rounded) < f.smallest_normal:
            remark = "subnormal: fewer bits"
        rows.append(f"| {f.name} | {rounded:.9g} | {error} | {remark} |")
    table = "| format | becomes | relative error | |\n| --- | --- | --- | --- |\n" + "\n".join(rows)
    return Page(
        markdown=f"# {value:g}\n\nRounded to the nearest number of each format, ties to even.\n\n{table}\n",
        facts={"kind": "number", "value": value, "becomes": jsonable(facts)},
    )


def rule_facts(entry: RuleEntry) -> dict[str, Any]:
    """A rule as plain values, for `mpdoctor rules --output-format json`."""
    return {
        "kind": entry.kind,
        "code": entry.code,
        "slug": entry.slug,
        "severity": jsonable(entry.severity),
        "confidence": jsonable(entry.confidence),
        "causes": list(entry.causes),
        "summary": entry.doc.summary,
    }


def _rule_page(entry: RuleEntry) -> Page:
    what = {"gpu": "GPU rule", "config": "config rule", "script": "script rule", "detector": "detector of `mpdoctor replay`"}.get(
        entry.kind, "experiment"
    )
    traits = [what]
    if entry.severity:
        traits.append(str(entry.severity.value))
    if entry.confidence:
        traits.append(f"{entry.confidence.value} confidence")
    if entry.causes:
        traits.append("cause " + ", ".join(f"`{cause}`" for cause in entry.causes))
    title, _, body = entry.doc.markdown(f"{entry.code} {entry.slug}").partition("\n\n")
    return Page(markdown=f"{title}\n\n{' · '.join(traits)}\n\n{body}\n", facts=rule_facts(entry) | {"sections": entry.doc.sections})


def _cause_page(cause: Cause) -> Page:
    summary, *sections = cause.documentation.split("\n\n")
    parts = [f"# {cause.title} (`{cause.id}`)".replace("`", ""), summary.strip()]
    for section in sections:
        heading, _, text = section.partition("\n")
        indented = text.startswith("    ")
        parts.append(f"## {heading}\n\n" + "\n".join(line.strip() for line in text.splitlines()) if indented else section.strip())
    parts.append(f"## What to change\n\n{cause.remedy.text}")
    if cause.remedy.patch:
        parts.append(f"```\n{cause.remedy.patch.rstrip()}\n```")
    parts.append(f"## To test it\n\n```\n{cause.test_hint}\n```")
    speakers = [entry for entry in rules() if cause.id in entry.causes]
    if speakers:
        parts.append(
            "## Rules, detectors and experiments that speak for it\n\n" + "\n".join(f"- `{e.code}` {e.slug}: {e.doc.summary}" for e in speakers)
        )
    facts = {
        "kind": "cause",
        "id": cause.id,
        "order": cause.order,
        "title": cause.title,
        "remedy": {"text": cause.remedy.text, "patch": cause.remedy.patch},
        "test": cause.test_hint,
        "rules": [entry.code for entry in speakers],
    }
    return Page(markdown="\n\n".join(parts) + "\n", facts=facts)


def _format_page(number_format: FloatFormat) -> Page:
    f = number_format
    integers = 2 ** (f.significand_bits + 1)
    rows = [
        ("bits", f"{f.bits} in memory: 1 sign, {f.exponent_bits} exponent, {f.significand_bits} significand"),
        ("largest number", f"{f.max:.6g}"),
        ("above it", "infinity" if f.has_infinity else "saturates or becomes NaN; there is no infinity"),
        ("smallest normal", f"{f.smallest_normal:.4g} (2^{1 - f.bias}); below it bits of precision are lost"),
        ("smallest subnormal", f"{f.smallest_subnormal:.4g} (2^{1 - f.bias - f.significand_bits}); half of it and below is 0"),
        ("spacing at 1", f"{f.spacing_at_one:.4g} (2^-{f.significand_bits})"),
        ("exact integers", f"up to {integers}; {integers} + 1 = {integers}"),
        ("also called", ", ".join(f.aliases)),
    ]
    facts = {
        "kind": "format",
        "name": f.name,
        "aliases": list(f.aliases),
        "bits": f.bits,
        "exponent_bits": f.exponent_bits,
        "significand_bits": f.significand_bits,
        "max": f.max,
        "smallest_normal": f.smallest_normal,
        "smallest_subnormal": f.smallest_subnormal,
        "spacing_at_one": f.spacing_at_one,
        "has_infinity": f.has_infinity,
        "purpose": f.purpose,
    }
    table = "| | |\n| --- | --- |\n" + "\n".join(f"| {name} | {value} |" for name, value in rows)
    return Page(markdown=f"# {f.name}\n\n{f.purpose}\n\n{table}\n\n## Next to the others\n\n{_comparison()}\n", facts=facts)


def _comparison() -> str:
    head = "| format | largest | smallest normal | smallest subnormal | spacing at 1 | 1e-8 becomes |\n| --- | --- | --- | --- | --- | --- |\n"
    return head + "\n".join(
        f"| {f.name} | {f.max:.4g} | {f.smallest_normal:.3g} | {f.smallest_subnormal:.3g} | {f.spacing_at_one:.3g} | "
        f"{'0' if f.smallest_subnormal / 2 >= 1e-8 else '1e-8'} |"
        for f in (FP32, *(other for other in FORMATS if other is not FP32))
    )
