"""The command line: parses, calls `api`, renders, exits. The only code that imports typer.

One command is one module named like it, with a function of that name; `app.COMMANDS` lists them in the order of `mpdoctor --help`.
A command imports `api` inside its body, so that `mpdoctor gpu` does not pay for what `mpdoctor replay` needs.
"""

import gc

USUAL_PACE = gc.get_threshold()
"""How often Python looks for garbage unless told otherwise. Long work goes back to it."""

# Importing makes a hundred thousand objects and no garbage; looking for it would cost a sixth of the start of `gpu` and `check`.
gc.set_threshold(200_000, *USUAL_PACE[1:])
