"""Jupyter notebooks: the settings that their code cells hand to the classes which take settings, at their places in the notebook's file."""

from __future__ import annotations

from mpdoctor.check.scripts.notebook import CellPlaces, read_notebook
from mpdoctor.check.sources.node import Document, Node
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
        nodes: dict[int, Node] = {}  # a value that a name stands for is shared by all who use the name
        rows: dict[tuple[int, int], str] = {}
        for document in found:
            document.syntax, document.text, document.rows = "notebook", text, rows
            nodes |= {id(node): node for node in (document.root, *(node for _, node in document.root.walk()))}
        for node in nodes.values():
            _move(node, source.place, rows)
    return found


def _move(node: Node, places: CellPlaces, rows: dict[tuple[int, int], str]) -> None:
    """Move a node from its place in the joined cells to its place in the file, and keep what the cell's reader calls it."""
    row = places.row(node.line)
    node.line, node.column = places.exact(node.line, node.column)
    if node.value_line:
        node.value_line, node.value_column = places.exact(node.value_line, node.value_column)
    rows.setdefault((node.line, node.column), row)


SOURCE = Source(suffixes=(".ipynb",), parse=parse)
