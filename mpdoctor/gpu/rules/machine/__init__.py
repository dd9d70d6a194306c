"""Rules whose subject is `gpu.machine.Machine`."""
