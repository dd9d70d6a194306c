"""Jupyter notebooks: the settings that their code cells hand to the classes which take settings, at their places in the notebook's file."""

from __future__ import annotations

from mpdoctor.check.scripts.notebook import CellPlaces, read_notebook
from mpdoctor.check.sources.node import Document
from mpdoctor.check.sources.python_ import constructions
from mpdoctor.check.sources.source import Source
from mpdoctor.core.errors import NothingToJudge


def parse(text: str, path: str) -> list[Document]:
    """Each construction of a class that takes settings. A notebook in another language than Python has none."""
    try:
        source = read_notebook(path, text)
    except NothingToJudge:
        return []
    found = constructions(source.tree, source.text, path)
    if isinstance(source.place, CellPlaces):
        for document in found:
            document.syntax, document.text = "notebook", text
            _place(document, source.place)
    return found


def _place(document: Document, places: CellPlaces) -> None:
    """Move every node from its place in the joined cells to its place in the file, and keep what the cell's reader calls it."""
    for node in (document.root, *(node for _, node in document.root.walk())):
        row = places.row(node.line)
        node.line, node.column = places.exact(node.line, node.column)
        node.value_line, node.value_column = places.exact(node.value_line, node.value_column)
        document.rows.setdefault((node.line, node.column), row)


SOURCE = Source(suffixes=(".ipynb",), parse=parse)
