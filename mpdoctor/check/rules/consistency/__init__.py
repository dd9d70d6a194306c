"""Files that contradict each other or their framework (CFG8)."""
