"""The run's autocast regions: which dtypes they ask for, CUDA's on the CPU, and the dtype that an experiment puts in another's place."""

from __future__ import annotations

from typing import Any

import torch

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.fidelity import Fidelity

_LOW = (torch.float16, torch.bfloat16)


class AutocastRegions:
    """What stands for `__init__`, `__enter__` and `__exit__` of torch's autocast during a run.

    Attributes:
        dtypes: the 16-bit dtypes that regions were opened with.
        emulated_cuda: whether a region for CUDA ran on the CPU.
    """

    def __init__(self, changes: Changes, fidelity: Fidelity) -> None:
        self._changes = changes
        self._fidelity = fidelity
        self.dtypes: list[str] = []
        self.emulated_cuda = False

    def opened(self, original: Any) -> Any:
        """Stands for `__init__`."""

        def init(region: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
            stands_for_cuda = device_type.startswith("cuda") and self._fidelity.map_cuda
            names = ("dtype", "enabled", "cache_enabled")
            given = dict(zip(names, args, strict=False)) | kwargs
            if stands_for_cuda:
                device_type = "cpu"
                if given.get("dtype") is None:
                    given["dtype"] = torch.float16  # CUDA's default
            original(region, device_type, **given)
            region._mpdoctor_cuda = stands_for_cuda
            if region._enabled and region.fast_dtype in _LOW:
                self.dtypes.append(str(region.fast_dtype).removeprefix("torch."))
            wanted = self._changes.compute_dtype
            if wanted is not None and region.fast_dtype in _LOW:
                if wanted in _LOW:
                    region.fast_dtype = wanted
                else:
                    region._enabled = False
            if self._changes.uncached_autocast:
                region._cache_enabled = False

        return init

    def entered(self, original: Any) -> Any:
        """Stands for `__enter__`."""

        def enter(region: Any) -> Any:
            result = original(region)
            if getattr(region, "_mpdoctor_cuda", False):
                self._fidelity.cuda_regions += 1
                self.emulated_cuda = True
            return result

        return enter

    def left(self, original: Any) -> Any:
        """Stands for `__exit__`."""

        def leave(region: Any, *exc: Any) -> Any:
            if getattr(region, "_mpdoctor_cuda", False):
                self._fidelity.cuda_regions -= 1
            return original(region, *exc)

        return leave
