"""Small runs that break (and one that does not), for `mpdoctor demo`: one recipe per file, read by its docstring, never imported.

The first line of a docstring says what happens; the rest is what to notice in the report.
"""
