"""Rules over a checkpoint's files and stored numbers (RUN7nn). To add one, add a file."""
