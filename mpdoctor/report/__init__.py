"""A `Report` as text for people and machines. Imports `core` only.

One output format is one file of `formats/` that exports `RENDERER`; its name is the file's name, and nothing has to be edited to add one.
`document.py` is the JSON contract (`schema/report-1.json`); `sections/` are the parts of the terminal report.
"""
