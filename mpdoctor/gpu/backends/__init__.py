"""How devices are read, one file per vendor library or file system.

Each backend turns what it finds into `core.device.GpuInfo`. Library calls (`nvml`, `amdsmi`) are made in a child process, because a sick
GPU makes them hang or crash; see `isolation`. pynvml is imported in `nvml_child` and nowhere else.
"""
