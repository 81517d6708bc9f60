"""Estimators over blocks: how each family is fitted to a source, and how it predicts one."""
