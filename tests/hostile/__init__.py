"""Hostile inputs: every public entry point against broken data, files and machines, in children that may die.

``python -m hostile`` (in tests/) runs groups of cases and prints counts: inputs tried, crashes, hangs, wrong results,
unclear errors. See ``runner`` for what each of them means.
"""
