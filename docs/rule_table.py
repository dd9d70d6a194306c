"""Write the README's table of all rules.

Run from the repository's root: python docs/rule_table.py
"""

from __future__ import annotations

from pathlib import Path

from mpdoctor.catalogue import rules
from mpdoctor.cli.rules import markdown_table

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- rules: written by docs/rule_table.py -->\n", "<!-- end of the rules -->"


def with_rules(readme: str) -> str:
    """The README with the table as it should be. Raises ValueError where the marks are missing."""
    before, _, rest = readme.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"the README lacks {BEGIN.strip()} or {END}")
    entries = list(rules())
    summary = f"<summary>All {len(entries)} rules, detectors and experiments</summary>"
    return f"{before}{BEGIN}\n<details>{summary}\n\n{markdown_table(entries)}\n</details>\n\n{END}{after}"


if __name__ == "__main__":
    README.write_text(with_rules(README.read_text(encoding="utf-8")), encoding="utf-8")
