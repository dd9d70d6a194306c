"""What charts are made of: scales, and elements that are escaped."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 360, 150
"""Size in CSS pixels at which text is legible on a telephone; charts grow with their column."""

LEFT, RIGHT, TOP, BOTTOM = 60, 10, 14, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart.

    Attributes:
        title: what it shows, in a few words.
        description: the same facts in a sentence or two, for readers who do not see it.
        svg: the drawing.
    """

    title: str
    description: str
    svg: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Maps values to pixels: linear, or logarithmic to base 10."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    @classmethod
    def vertical(cls, values: Sequence[float]) -> Scale:
        """A scale for finite values, largest at the top; logarithmic when all are positive and span more than a factor of 50."""
        low, high = min(values), max(values)
        logarithmic = low > 0 and high / low > 50
        if low / 2 == high / 2:  # also two subnormal numbers whose halves are equal
            margin = abs(low) * 0.5 or 1.0
            low, high = low - margin, high + margin
        return cls(low=low, high=high, start=HEIGHT - BOTTOM, end=TOP, logarithmic=logarithmic)

    def __call__(self, value: float) -> float:
        """Pixel of a value."""
        if self.logarithmic:
            fraction = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:
            # Halved first: the range of fp32 and more must not overflow here.
            fraction = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return self.start + fraction * (self.end - self.start)


class Drawing:
    """An SVG image that is built up element by element."""

    def __init__(self, title: str, description: str, *, width: int = WIDTH, height: int = HEIGHT) -> None:
        self._root = ET.Element("svg", {"viewBox": f"0 0 {width} {height}", "role": "img", "aria-label": f"{title}. {description}", "class": "chart"})

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """A straight line of a kind that the page's style knows."""
        self._add("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2}, kind)

    def curve(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """A line through points; a single point is drawn as a dot."""
        if len(points) == 1:
            self._add("circle", {"cx": points[0][0], "cy": points[0][1], "r": 2}, f"{kind} dot")
        else:
            self._add("polyline", {}, kind).set("points", " ".join(f"{x:.1f},{y:.1f}" for x, y in points))

    def box(self, x: float, y: float, width: float, height: float, kind: str, hint: str = "") -> None:
        """A rectangle; `hint` shows on hovering."""
        element = self._add("rect", {"x": x, "y": y, "width": max(width, 0.5), "height": max(height, 0.5)}, kind)
        if hint:
            ET.SubElement(element, "title").text = hint

    def cross(self, x: float, y: float, kind: str) -> None:
        """A small cross."""
        self._add("path", {}, kind).set("d", f"M{x - 3:.1f} {y - 3:.1f}l6 6m0-6l-6 6")

    def text(self, x: float, y: float, text: str, kind: str = "label", anchor: str = "start") -> None:
        """A label; `anchor` is `start`, `middle` or `end`."""
        element = self._add("text", {"x": x, "y": y}, kind)
        element.set("text-anchor", anchor)
        element.text = text

    def finish(self) -> str:
        """The image as markup, safe to put into a page."""
        return ET.tostring(self._root, encoding="unicode")

    def _add(self, tag: str, numbers: dict[str, float], kind: str) -> ET.Element:
        element = ET.SubElement(self._root, tag, {name: f"{value:.1f}".removesuffix(".0") for name, value in numbers.items()})
        element.set("class", kind)
        return element
