"""Calibrating a panel on human labels: the study of a votes file, and what is deployed from it."""
