"""Calibration: scores mapped to probabilities on held-out examples."""
