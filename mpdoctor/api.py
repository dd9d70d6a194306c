"""The public Python API, and the only place where the slices meet."""

from __future__ import annotations
