"""Files read and written within bounds: those of a run folder, and those that people hand in."""
