"""The user's settings: `[tool.mpdoctor]` in pyproject.toml, or mpdoctor.toml, in this folder or one above.

```toml
[tool.mpdoctor]
select = ["CFG1", "CFG2"]
ignore = ["numeric-string"]
fail-on = "warning"
gpu = ["v100"]
baseline = "mpdoctor-baseline.json"

[tool.mpdoctor.severity]
CFG302 = "error"
no-warmup = "off"

[tool.mpdoctor.thresholds]
lr_lora = 2e-3
```
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.core.finding import Severity
from mpdoctor.core.gate import FailOn

MAX_BYTES = 1 << 20


class Settings(NamedTuple):
    """What the file says; defaults where it says nothing.

    Attributes:
        source: the file; empty without one.
        select, ignore: codes, prefixes or slugs of rules.
        severity: code, prefix or slug -> severity, or None for "off".
        fail_on: lowest severity that fails the gate.
        gpu: cards that runs are for.
        thresholds: where rules begin to speak, by name.
        baseline: file of known findings.
    """

    source: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity | None] = {}
    fail_on: FailOn | None = None
    gpu: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = {}
    baseline: str | None = None


def find_settings(start: Path | None = None) -> Settings:
    """The settings that count in a folder: the nearest file upwards, not beyond the repository's root.

    Raises UnreadableInput for a file that cannot be parsed, or an entry that is unknown or of the wrong type.
    """
    folder = (start or Path()).absolute()
    for place in (folder, *folder.parents):
        for name in ("mpdoctor.toml", "pyproject.toml"):
            path = place / name
            data = _bytes(path)
            # Most projects have a pyproject.toml and no settings for mpdoctor in it: do not parse it for nothing.
            if data is not None and (name == "mpdoctor.toml" or b"tool.mpdoctor" in data):
                return _parsed(data, path)
        if (place / ".git").exists():
            break
    return Settings()


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()[:MAX_BYTES] if path.is_file() else None
    except OSError:
        return None


def _parsed(data: bytes, path: Path) -> Settings:
    import tomllib

    try:
        content = tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableInput(f"{path}: not valid TOML: {error}") from None
    table = content.get("tool", {}).get("mpdoctor", {}) if path.name == "pyproject.toml" else content.get("tool", {}).get("mpdoctor", content)
    return _settings(table, path)


def _settings(table: Any, path: Path) -> Settings:
    known = ("select", "ignore", "severity", "fail-on", "gpu", "thresholds", "baseline")
    if not isinstance(table, dict):
        raise UnreadableInput(f"{path}: [tool.mpdoctor] is no table")
    for name in table:
        if name not in known:
            raise UnreadableInput(f"{path}: [tool.mpdoctor] has no setting {name!r}", f"It has {', '.join(known)}.")
    baseline = table.get("baseline")
    if baseline is not None and not isinstance(baseline, str):
        raise UnreadableInput(f"{path}: baseline is no text")
    return Settings(
        source=str(path),
        select=_texts(table, "select", path),
        ignore=_texts(table, "ignore", path),
        severity={name: _severity(name, value, path) for name, value in _table(table, "severity", path).items()},
        fail_on=_fail_on(table.get("fail-on"), path),
        gpu=_texts(table, "gpu", path),
        thresholds={name: _number(name, value, path) for name, value in _table(table, "thresholds", path).items()},
        baseline=str(path.parent / baseline) if baseline else None,
    )


def _texts(table: dict[str, Any], name: str, path: Path) -> tuple[str, ...]:
    value = table.get(name, [])
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UnreadableInput(f"{path}: {name} is no list of texts")
    return tuple(value)


def _table(table: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    value = table.get(name, {})
    if not isinstance(value, dict):
        raise UnreadableInput(f"{path}: {name} is no table")
    return value


def _severity(name: str, value: Any, path: Path) -> Severity | None:
    if value == "off":
        return None
    if value in [severity.value for severity in Severity]:
        return Severity(value)
    raise UnreadableInput(f"{path}: severity.{name} is {value!r}", 'Use "error", "warning", "info" or "off".')


def _fail_on(value: Any, path: Path) -> FailOn | None:
    if value is None:
        return None
    if value in [choice.value for choice in FailOn]:
        return FailOn(value)
    raise UnreadableInput(f"{path}: fail-on is {value!r}", f"Use {', '.join(choice.value for choice in FailOn)}.")


def _number(name: str, value: Any, path: Path) -> float:
    from mpdoctor.check.thresholds import Thresholds

    if not hasattr(Thresholds, name) or name.startswith("_"):
        known = ", ".join(sorted(key for key in vars(Thresholds) if not key.startswith("_")))
        raise UnreadableInput(f"{path}: there is no threshold {name!r}", f"There are {known}.")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnreadableInput(f"{path}: thresholds.{name} is no number")
    return float(value)
