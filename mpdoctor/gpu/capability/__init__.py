"""What a device computes in, by generation: one file per vendor, from published tables, never from what a framework claims."""
