"""The command line: parses, calls `api`, renders, exits. The only code that imports typer."""
