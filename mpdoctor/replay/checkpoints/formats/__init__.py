"""One file per checkpoint format. Each exports `FORMAT`; to add a format, add a file."""
