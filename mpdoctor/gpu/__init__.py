"""`mpdoctor gpu`: which precision can this machine train in, and is the hardware healthy?

probe -> GpuInfo -> rules. Imports `core` and `causes`; pynvml only under `backends`; never torch.
"""
