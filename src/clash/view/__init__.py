"""The pages of ``clash view``: the runs of a folder, one run while it goes on, two runs compared."""
