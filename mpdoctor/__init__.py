"""mpdoctor finds out why a mixed-precision PyTorch training run broke, and says what to change.

Public Python API: `run_gpu`, `run_check`, `run_replay` (each returns a `mpdoctor.core.report.Report`), and `trace`, which follows one step of
a loop of your own. They are resolved on first use, so that `import mpdoctor` stays light.
"""

from __future__ import annotations

from typing import Any

from mpdoctor.core.version import __version__

__all__ = ["__version__", "run_check", "run_gpu", "run_replay", "trace"]


def __getattr__(name: str) -> Any:
    if name in ("run_check", "run_gpu", "run_replay", "trace"):
        from mpdoctor import api

        return getattr(api, name)
    raise AttributeError(f"module 'mpdoctor' has no attribute {name!r}")
