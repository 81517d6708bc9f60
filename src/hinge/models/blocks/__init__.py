"""Estimators over blocks: fits and predictions of every family for sources."""
