"""Training tasks by the model's head: what a row must hold, how rows become a batch, and what the labels are. One file per task."""
