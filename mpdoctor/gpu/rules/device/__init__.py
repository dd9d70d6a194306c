"""Rules whose subject is one `core.device.GpuInfo`."""
