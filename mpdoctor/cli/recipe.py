"""`mpdoctor recipe`: a recipe to fill in, drafted from a training script when one is given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mpdoctor.cli import console
from mpdoctor.core.gate import ExitCode


def recipe(
    script: Annotated[Path | None, typer.Argument(metavar="[TRAIN.py]", help="A training script. It is read, never run.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback if mpdoctor itself fails.")] = False,
) -> int:
    """Print a recipe for `mpdoctor replay --recipe`: how to build the model, the batches and the loss of the run that broke.

    Example: mpdoctor recipe train.py > recipe.py
    """
    from mpdoctor.drafting.recipe import MARK, draft
    from mpdoctor.drafting.training_script import TrainingScript

    text = draft(script)
    console.write_stdout(text)
    if script is not None and TrainingScript.of(script).hf_trainer:
        console.hint("this script trains with a Trainer: its checkpoint folders replay without a recipe: mpdoctor replay CHECKPOINT --data FILE")
    console.say(f"{text.count(MARK.removesuffix(':'))} places are marked CHECK; then: mpdoctor replay --recipe recipe.py")
    return ExitCode.CLEAN
