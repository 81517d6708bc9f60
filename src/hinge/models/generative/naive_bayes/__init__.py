"""Naive Bayes: one pass of counting, one distribution per column and class."""
