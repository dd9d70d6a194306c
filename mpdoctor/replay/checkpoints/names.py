"""Names out of files, made safe to print: a terminal obeys control characters, and half a surrogate pair cannot be encoded."""

from __future__ import annotations


def printable(name: str) -> str:
    """`name` with control characters and surrogates written as escapes."""
    return name if name.isprintable() else "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)


def without_surrogates(text: str) -> str:
    """`text` with half surrogate pairs replaced by question marks."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text
