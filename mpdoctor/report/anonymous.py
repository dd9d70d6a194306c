"""A report without what tells whose it is: paths, user, host, ids of devices and processes, names of models and data sets.

What the diagnosis rests on stays: dotted names of modules, numbers, versions, kinds of devices, and paths inside installed packages.
"""

from __future__ import annotations

import dataclasses
import getpass
import platform
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar

from mpdoctor.core.location import DeviceRef
from mpdoctor.core.report import Report

T = TypeVar("T")

_NAMING_KEYS = re.compile(
    r"(^|[._])(model|tokenizer|dataset|data|train_file|run_name|experiment|project|entity|hub|output|save|log|cache|adapter|checkpoint)",
    re.IGNORECASE,
)
"""Config keys whose text values name things of the user."""

_COMMON_USERS = frozenset({"root", "user", "users", "ubuntu", "admin", "runner", "jovyan", "docker", "nobody", "home", "python", "torch"})
_PATH = re.compile(r"(?<![\w.<])(?:[A-Za-z]:|~)?(?:[/\\][^\s/\\:;,'\"`()<>|*?]+){2,}[/\\]?")
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_DEVICE = re.compile(rf"(?<![\w-])(?:(?:(?:GPU|MIG)-)+(?:{_UUID}|[0-9a-fA-F]{{8,}})(?:/\d+/\d+)?|{_UUID})(?![\w-])")
"""A GPU or one of its slices, as NVML, amdsmi and torch name them."""
_PCI = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{4,8}:)[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?(?![\w:])")
_PROCESSES = re.compile(r"\bpids? \d+(?:, \d+)*")
_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")


def anonymised(report: Report) -> Report:
    """The report with every text cleaned; equal names get equal stand-ins, so that it can still be followed."""
    scrub = _Scrub()
    for item in report.inputs:
        scrub.name_path(item.path, re.sub(r"\W+", "-", item.role) or "input")
    for key, setting in report.config.items():
        value = setting.get("value") if isinstance(setting, Mapping) else setting
        if isinstance(value, str) and _NAMING_KEYS.search(str(key)) and len(value) > 3 and not value.isdigit():
            scrub.name(value, "name")
    for gpu in report.gpus:
        if gpu.ref.uuid:
            scrub.name(gpu.ref.uuid, "uuid")
    scrub.name_person()
    return scrub.clean(report)


class _Scrub:
    """Replaces known names, then whatever still looks like a path."""

    def __init__(self) -> None:
        self._stand_ins: dict[str, str] = {}
        self._paths: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._processes: dict[str, str] = {}
        """Apart from the names: the same digits may stand elsewhere for something else."""

    def name(self, text: str, kind: str) -> str:
        """The stand-in for `text`."""
        if text not in self._stand_ins:
            self._numbers[kind] = self._numbers.get(kind, 0) + 1
            self._stand_ins[text] = f"<{kind}-{self._numbers[kind]}>"
        return self._stand_ins[text]

    def name_path(self, path: str, kind: str) -> None:
        """A stand-in for a path that keeps the file's suffix, which says what it is."""
        if len(path) < 2 or path in self._stand_ins:
            return
        stand_in = self.name(path, kind)
        self._paths.add(path)
        self._stand_ins[path] = f"{stand_in[1:-1]}{PurePath(path).suffix}"

    def name_person(self) -> None:
        """User and host of this process."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = ""
        host = platform.node()
        if len(user) > 3 and user.lower() not in _COMMON_USERS:
            self._stand_ins.setdefault(user, "<user>")
        for name in (host, host.partition(".")[0]):
            if len(name) > 3 and name != "localhost":
                self._stand_ins.setdefault(name, "<host>")

    def clean(self, value: T) -> T:
        """`value` with every text in it cleaned, whatever its type."""
        return self._any(value)  # type: ignore[no-any-return]

    def _any(self, value: Any) -> Any:
        if isinstance(value, Enum):
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, DeviceRef):
            return dataclasses.replace(value, uuid=self._text(value.uuid) if value.uuid else None)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.replace(value, **{f.name: self._any(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init})
        if isinstance(value, Mapping):
            return {self._any(key): self._process(str(item)) if key == "pid" else self._any(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            items = [self._any(item) for item in value]
            return tuple(items) if isinstance(value, tuple) else items
        return value

    def _text(self, text: str) -> str:
        # Paths before names, which may be parts of them; the longest first, because a path begins with its folder.
        for name in sorted(self._paths, key=len, reverse=True):
            text = self._replace(name, text)
        text = _PATH.sub(self._path, text)
        for name in sorted(self._stand_ins.keys() - self._paths, key=len, reverse=True):
            text = self._replace(name, text)
        text = _DEVICE.sub(lambda match: self.name(match[0], "uuid"), text)
        text = _PCI.sub(lambda match: self.name(match[0], "pci-address"), text)
        return _PROCESSES.sub(lambda match: re.sub(r"\d+", lambda number: self._process(number[0]), match[0]), text)

    def _process(self, number: str) -> str:
        return self._processes.setdefault(number, f"<process-{len(self._processes) + 1}>")

    def _replace(self, name: str, text: str) -> str:
        if name not in text:
            return text
        return re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", self._stand_ins[name].replace("\\", r"\\"), text)

    def _path(self, match: re.Match[str]) -> str:
        path = match[0]
        inside = _PACKAGES.sub("", path)
        if inside != path:
            return inside
        self.name_path(path, "path")
        return self._stand_ins.get(path, path)
