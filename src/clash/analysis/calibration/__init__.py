"""Calibrate a panel on human labels: study a votes file, fit a calibrator, apply it to new votes."""
