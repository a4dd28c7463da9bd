"""Read and write files within bounds: those of a run folder, and those that people provide."""
