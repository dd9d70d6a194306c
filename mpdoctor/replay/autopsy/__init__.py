"""The autopsy: what the stored numbers of a checkpoint say, streamed in bounded memory, without model code or torch.

`stream` reads a tensor's bytes in pieces, `bits` knows the layouts, `counting` judges pieces by integer
arithmetic on their bits, `examine` does it for a whole checkpoint. numpy is imported inside functions.
"""

from mpdoctor.replay.autopsy.examine import autopsy
from mpdoctor.replay.autopsy.result import AutopsyResult, DtypeStory, OptimizerSummary, ScalerState, TensorStats

__all__ = ["AutopsyResult", "DtypeStory", "OptimizerSummary", "ScalerState", "TensorStats", "autopsy"]
