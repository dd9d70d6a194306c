"""The parts of the HTML report: what the page shows (`page`), its template and style (`templates/`), and its charts.

Charts are SVG written here, inline in the page: four kinds of plain charts take about two hundred lines, a plotting library 35 to 64 MB.
They take their colours from the page's style, so that they follow light and dark.
"""
