"""Rules over a run's own log (RUN8nn). To add one, add a file."""
