"""The command line: parses, calls `api`, renders, exits. The only code that imports typer.

One command is one module named like it, with a function of that name; `app.COMMANDS` lists them in the order of `mpdoctor --help`.
A command imports `api` inside its body, so that `mpdoctor gpu` does not pay for what `mpdoctor replay` needs.
"""
