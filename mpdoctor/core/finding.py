"""What one rule or detector says about one place."""

from __future__ import annotations

from enum import StrEnum

from mpdoctor.core.evidence import Evidence
from mpdoctor.core.location import DeviceRef, FileSpan, Location, TensorSite
from mpdoctor.core.record import dataclass


class Severity(StrEnum):
    """How bad it is if the finding is right. Ordered by `rank`, not by name."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """2 for an error, 1 for a warning, 0 for information."""
        return {"error": 2, "warning": 1, "info": 0}[self.value]

    def lowered(self) -> Severity:
        """One severity lower: for values that are a framework's default, not the user's choice."""
        return {2: Severity.WARNING, 1: Severity.INFO, 0: Severity.INFO}[self.rank]


class Confidence(StrEnum):
    """How sure the finding is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """2 for high, 1 for medium, 0 for low."""
        return {"high": 2, "medium": 1, "low": 0}[self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A safe change of a file: at a setting's place, `old` (the value as written) becomes `new`; None takes the line out.

    Without a key it is a change of a script: the text `old` at exactly that line and column (empty: an insertion) becomes `new`.
    """

    at: FileSpan
    old: str
    new: str | None
    key: str | None = None
    """The setting's new name; its value stays, and `new` is `old`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What to change: a sentence, and where possible a patch (unified diff or a settings snippet).

    `edits` are changes that `--fix` may make: together they remove the fault, and nothing else changes.
    """

    text: str
    patch: str | None = None
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule's statement about one place.

    `code` is stable for ever (`CFG101`), `slug` names the bad pattern, `cause` is an id of the
    checklist or None. `fingerprint` identifies the finding over runs: it contains code, file, key
    and normalised value but no line number, so that it survives edits elsewhere in the file.
    """

    code: str
    slug: str
    severity: Severity
    confidence: Confidence
    message: str
    location: Location | None = None
    cause: str | None = None
    evidence: tuple[Evidence, ...] = ()
    remedy: Remedy | None = None
    related: tuple[FileSpan, ...] = ()
    identity: str = ""
    """What tells this finding from others of its rule at the same key, e.g. the offending value."""

    @property
    def fingerprint(self) -> str:
        """16 hex digits that stay the same while the fault stays the same."""
        import hashlib  # loads OpenSSL, which most runs never need

        match self.location:
            case FileSpan(file=file, key=key):
                place = f"{file}|{key}"
            case TensorSite(phase=phase, module=module, op=op, tensor=tensor):
                place = f"{phase}|{module}|{op}|{tensor}"
            case DeviceRef(name=name, index=index, uuid=uuid):
                place = f"{uuid or index}|{name}"
            case None:
                place = ""
        return hashlib.sha256(f"{self.code}|{place}|{self.identity}".encode("utf-8", "backslashreplace")).hexdigest()[:16]
