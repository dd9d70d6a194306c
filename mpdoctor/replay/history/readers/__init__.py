"""One file per kind of log. Each exports `LOG`; to add a kind, add a file."""
