"""Text that is safe to show: no control characters, and ASCII where that is asked for."""

from __future__ import annotations

import re
import unicodedata

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")

# fmt: off
_ASCII = {
    "…": "...", "–": "-", "—": "-", "−": "-", "·": "-", "•": "*", "×": "x", "→": "->", "←": "<-", "↓": "v", "↑": "^", "≤": "<=", "≥": ">=",
    "≈": "~", "≠": "!=", "±": "+/-", "∞": "inf", "√": "sqrt", "Δ": "delta", "σ": "sigma", "β": "beta", "ε": "eps", "µ": "u", "μ": "u",
    "°": "deg", '’': "'", '‘': "'", '“': '"', '”': '"', "✓": "+", "✗": "x", "✘": "x", "⚠": "!", "│": "|", "┃": "|", "─": "-", "━": "-",
    "┄": "-", "└": "`", "├": "|", "▌": "|", "●": "*", "○": "o", "½": "1/2", "²": "^2", "³": "^3", "\N{NO-BREAK SPACE}": " ",
    "\N{NARROW NO-BREAK SPACE}": " ", "▁": "_", "▂": ".", "▃": "-", "▄": "=", "▅": "+", "▆": "*", "▇": "%", "█": "#",
}
# fmt: on
_TABLE = str.maketrans(_ASCII)


def visible(text: str) -> str:
    """`text` with control, direction and zero-width characters spelled out, and bytes of file names that are not UTF-8.

    Names come out of other people's files: an escape sequence in one must not reach the terminal.
    """

    def spelled(match: re.Match[str]) -> str:
        point = ord(match[0])
        if 0xDC80 <= point <= 0xDCFF:  # how Python keeps a byte that it could not decode
            point -= 0xDC00
        return f"\\x{point:02x}" if point < 256 else f"\\u{point:04x}"

    return _CONTROL.sub(spelled, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """`visible`, with line breaks and tabs spelled out too: for names inside a line."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def to_ascii(text: str) -> str:
    """`text` in ASCII: known characters spelled, accents dropped, anything else as a backslash escape."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text.translate(_TABLE))
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    return plain.encode("ascii", "backslashreplace").decode("ascii")
