"""All code that imports torch: sessions, the training loop under a guard, the op-level tracer, experiments."""
