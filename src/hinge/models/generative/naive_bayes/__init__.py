"""Naive Bayes: one counting pass, one distribution per column and class."""
